package rtmp

import (
	"errors"
	"fmt"

	"millrace/internal/auth"
	"millrace/internal/session"
	"millrace/internal/stream"
)

// Codes of onStatus and _error (RTMP 1.0, section 7.2; the lists of Adobe's
// NetConnection and NetStream where that is silent).
const (
	codeConnectSuccess  = "NetConnection.Connect.Success"
	codeConnectRejected = "NetConnection.Connect.Rejected"
	codeCallFailed      = "NetConnection.Call.Failed"

	codePublishStart    = "NetStream.Publish.Start"
	codePublishBadName  = "NetStream.Publish.BadName"
	codePublishDenied   = "NetStream.Publish.Denied"
	codePublishFailed   = "NetStream.Publish.Failed"
	codeUnpublish       = "NetStream.Unpublish.Success"
	codePlayReset       = "NetStream.Play.Reset"
	codePlayStart       = "NetStream.Play.Start"
	codePlayStop        = "NetStream.Play.Stop"
	codePlayNotFound    = "NetStream.Play.StreamNotFound"
	codePlayDenied      = "NetStream.Play.Denied"
	codePlayFailed      = "NetStream.Play.Failed"
	codePlayUnpublished = "NetStream.Play.UnpublishNotify"

	levelStatus = "status"
	levelError  = "error"
)

// refusal is a command that was turned down, as the peer is told.
type refusal struct {
	reason session.Reason
	code   string
	text   string // what to do about it
}

func (r *refusal) Error() string { return r.text }

// refuse makes a refusal out of an error of stream or auth.
func refuse(err error, codeOf func(session.Reason) string) *refusal {
	r := session.Internal
	text := err.Error()
	var denied *auth.Denied
	var said *StatusError
	switch {
	case errors.As(err, &denied):
		r, text = denied.Reason, denied.Text
	case errors.As(err, &said): // another server has the last word, in its words
		return &refusal{reason: reasonOfCode(said.Code), code: said.Code, text: said.Description}
	case errors.Is(err, stream.ErrName):
		r = session.BadName
	case errors.Is(err, stream.ErrBusy):
		r = session.Busy
		text += ": stop that publisher first, or choose another stream key"
	case errors.Is(err, stream.ErrTooManyStreams), errors.Is(err, stream.ErrTooManyWaited):
		r = session.OverLimit
		text += ": try again later"
	case errors.Is(err, stream.ErrDraining):
		r = session.Draining
		text += ": connect again to reach another one"
	}
	return &refusal{reason: r, code: codeOf(r), text: text}
}

// reasonOfCode is the other way round: what a code of another server means.
func reasonOfCode(code string) session.Reason {
	switch code {
	case codePublishBadName:
		return session.Busy
	case codePublishDenied:
		return session.Unauthorized
	}
	return session.UpstreamLost
}

// publishCode is how a refused publisher is told why. Encoders look for BadName;
// for all others the level "error" is what counts.
func publishCode(r session.Reason) string {
	switch r {
	case session.Busy, session.BadName:
		return codePublishBadName
	case session.Unauthorized, session.Expired, session.Forbidden, session.Storm:
		return codePublishDenied
	}
	return codePublishFailed
}

// playCode is how a refused player is told why.
func playCode(r session.Reason) string {
	switch r {
	case session.NotFound, session.BadName:
		return codePlayNotFound
	case session.Unauthorized, session.Expired, session.Forbidden, session.Storm:
		return codePlayDenied
	}
	return codePlayFailed
}

// onStatus returns the payload of an onStatus command (section 7.2.2).
func onStatus(level, code, text string) []byte {
	return encode("onStatus", 0, nil, object{{"level", level}, {"code", code}, {"description", text}})
}

// farewell returns what to tell the peer of a role that we end, if anything.
func farewell(a session.Action, r session.Reason) []byte {
	text := fmt.Sprintf("the server ended it: %v", r)
	switch r {
	case session.Displaced:
		text = "another connection with the same key or address took it over"
	case session.Kicked:
		text = "an operator ended it"
	case session.Draining:
		text = "this node is shutting down: connect again to reach another one"
	case session.TokenExpired:
		text = "the signed URL expired"
	case session.Idle:
		text = "no audio, video or data came for too long"
	case session.UpstreamLost:
		text = "no upstream of this node answers"
	case session.Loop:
		text = "the upstreams of this node lead back to it"
	case session.StreamEnded, session.NotFound, session.BadCommand, session.ProtocolError, session.MessageTooBig:
	default:
		return nil
	}
	switch {
	case a == session.Publish:
		return onStatus(levelError, publishCode(r), text)
	case r == session.NotFound:
		return onStatus(levelError, codePlayNotFound, "no such stream: it did not begin in the waiting time")
	case r == session.UpstreamLost, r == session.Loop:
		return onStatus(levelError, codePlayNotFound, text)
	case r == session.StreamEnded:
		return onStatus(levelStatus, codePlayUnpublished, "the stream is over")
	}
	return onStatus(levelStatus, codePlayStop, text)
}
