package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"
)

// warmUp is how long a server is loaded before it is measured.
const warmUp = time.Second

// one measures one kind of answer once, with a server of its own.
func (o options) one(ctx context.Context, a answer) (result, error) {
	p, err := start(ctx, o, a.server)
	if err != nil {
		return result{}, err
	}
	defer p.stop()
	if _, err := o.load(ctx, p.addr, a, warmUp); err != nil {
		return result{}, err
	}
	cpu, err := p.cpu()
	if err != nil {
		return result{}, err
	}
	begun := time.Now()
	took, err := o.load(ctx, p.addr, a, o.duration)
	if err != nil {
		return result{}, err
	}
	wall := time.Since(begun)
	after, err := p.cpu()
	if err != nil {
		return result{}, err
	}
	slices.Sort(took)
	n := len(took)
	return result{
		perSecond: float64(n) / wall.Seconds(), cpu: (after - cpu).Seconds() / float64(n),
		p50: took[n/2], p99: took[n*99/100],
	}, ctx.Err()
}

// load asks again and again on all connections. It returns how long each answer took.
func (o options) load(ctx context.Context, addr string, a answer, d time.Duration) ([]time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var all sync.WaitGroup
	took, errs := make([][]time.Duration, o.conns), make([]error, o.conns)
	for i := range o.conns {
		all.Go(func() { took[i], errs[i] = client(ctx, i, addr, a) })
	}
	all.Wait()
	out := slices.Concat(took...)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, errors.New("no answers")
	}
	return out, nil
}

// client is one keep-alive connection, from a network of its own, so that the clients
// are in all regions.
func client(ctx context.Context, i int, addr string, a answer) (took []time.Duration, err error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, byte(i), 1, byte(1+i>>8))}}
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	request := []byte("GET " + a.uri + " HTTP/1.1\r\nHost: " + domain + "\r\nUser-Agent: player/1.0\r\nAccept: */*\r\nOrigin: https://site.example\r\n\r\n")
	r := bufio.NewReaderSize(c, 4096)
	for ctx.Err() == nil {
		begun := time.Now()
		if _, err := c.Write(request); err != nil {
			return nil, err
		}
		if err := readAnswer(r, a.status); err != nil {
			if ctx.Err() != nil {
				break // it was under way at the end
			}
			return nil, err
		}
		took = append(took, time.Since(begun))
	}
	return took, nil
}

// readAnswer takes one answer off r and checks its status.
func readAnswer(r *bufio.Reader, status string) error {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return err
	}
	if len(line) < 12 || string(line[9:12]) != status {
		return fmt.Errorf("answered %q, want %s", line, status)
	}
	length := -1
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
			break
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(value)); err != nil {
				return err
			}
		}
	}
	if length < 0 {
		return errors.New("an answer without Content-Length")
	}
	_, err = r.Discard(length)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}
