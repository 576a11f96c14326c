package rtmp

import "time"

const (
	// dozeMost is the longest that bytes may lie unread because they are too few to wake
	// anybody. It strikes when a picture is smaller than all before it, and when a
	// command comes alone.
	dozeMost = 100 * time.Millisecond
	// dozeLeast is the smallest picture for which it is worth it: a frame of sound has
	// less.
	dozeLeast = 256
	// dozeWindow is over how many pictures the smallest is looked for, and how many come
	// after it struck before the next try.
	dozeWindow = 128
)

// doze has the socket of a publisher not wake its goroutine for sound while all readers
// of the stream await the picture ([stream.Stream.AwaitsPicture]): being woken is most
// of what a small stream costs. The sound is read with the picture behind it, which is
// when it would have gone on.
//
// The kernel counts bytes (SO_RCVLOWAT) and knows no pictures, so a picture is told
// from sound by its size: as many bytes wake the goroutine as the smallest picture of
// late has. What lies unread must be confirmed to the peer all the same
// (ackUnread). Owned by the reading goroutine.
type doze struct {
	able bool // what lies unread is confirmed

	mark   int // as many bytes wake the goroutine; 0 and 1 are any
	least  int // bytes of the smallest picture of the last two windows
	lowest int // and of this one, as far as it goes
	seen   int // pictures of this window
	awake  int // pictures until the next try
}

// picture takes in the size of a picture, in bytes.
func (d *doze) picture(n int) {
	if d.awake > 0 {
		d.awake--
	}
	if d.seen == 0 {
		d.lowest = n
	}
	d.lowest = min(d.lowest, n)
	d.least = min(d.least, n)
	if d.seen++; d.seen == dozeWindow {
		d.least, d.seen = d.lowest, 0
	}
}

// want returns how many bytes are to wake the goroutine. rest is how many are missing of a
// message that has begun, 0 between messages, and negative where that is not known.
func (d *doze) want(awaitsPicture bool, rest int) int {
	switch {
	case rest != 0:
		return max(1, min(d.mark, rest)) // not later than with its last byte
	case !d.able || !awaitsPicture || d.awake > 0 || d.least < dozeLeast:
		return 1
	}
	return d.least
}

// dozing reports whether bytes may lie unread.
func (d *doze) dozing() bool { return d.mark > 1 }

// struck notes that dozeMost was over before enough had come.
func (d *doze) struck() { d.awake = dozeWindow }
