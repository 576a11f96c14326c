package admin

import (
	"millrace/internal/flv"
	"millrace/internal/stream"
)

// Resolution returns the size of the pictures of a stream: from its sequence
// header, else what its metadata claims, else 0, 0.
func Resolution(st stream.Stats) (width, height int) {
	d, _ := flv.Describe(st.Video)
	return resolution(st, d)
}

// resolution is Resolution for a sequence header that was read before.
func resolution(st stream.Stats, d flv.Description) (width, height int) {
	if d.Width > 0 || st.Meta.Wire == nil {
		return d.Width, d.Height
	}
	width, height, _, _ = flv.MetadataSize(st.Meta.Payload())
	return width, height
}

// videoOf returns what is known of the picture track, nil without one.
func videoOf(st stream.Stats) *Video {
	if !st.HasVideo {
		return nil
	}
	d, _ := flv.Describe(st.Video)
	w, h := resolution(st, d)
	return &Video{
		Codec: st.VideoCodec.String(), Profile: d.Profile, Level: d.Level,
		Width: w, Height: h, FPS: st.FPS, GOPms: st.GOP.Milliseconds(),
	}
}

// audioOf returns what is known of the sound track, nil without one.
func audioOf(st stream.Stats) *Audio {
	if !st.HasAudio {
		return nil
	}
	d, _ := flv.Describe(st.Audio)
	return &Audio{Codec: st.AudioCodec.String(), Profile: d.Profile, SampleRate: d.SampleRate, Channels: d.Channels}
}
