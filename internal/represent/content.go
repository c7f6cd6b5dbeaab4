package represent

import (
	"bytes"
	"errors"
	"io"
	"os"
	"sync"
)

// ErrCut is the error of a file that was cut while it was read. [Representation.WriteTo] returns it if fewer bytes were
// sent than the header says.
var ErrCut = errors.New("it was cut while it was read")

// content is what a page consists of: a text, or as much of a file as the size says.
type content struct {
	size int64 // in bytes
	text []byte
	file *os.File // nil: it is the text

	buffer *bytes.Buffer // holds the text; nil: the text is shared
}

// maxBuffered is the size, in bytes, up to which a file is sent in one write with its header. A longer one is streamed.
const maxBuffered = 64 << 10

// contentOfFile returns the content of an open file. It closes the file, unless the file is long, and is the content.
func contentOfFile(f *os.File, size int64) (content, error) {
	if size > maxBuffered {
		return content{size: size, file: f}, nil
	}
	defer f.Close()
	b := newBuffer()
	n, err := b.ReadFrom(io.LimitReader(f, size))
	if err == nil && n < size {
		err = ErrCut
	}
	if err != nil {
		freeBuffer(b)
		return content{}, err
	}
	return buffered(b), nil
}

// buffers are reused: the built-in HTML page takes more memory than everything else that a request allocates.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func newBuffer() *bytes.Buffer { return buffers.Get().(*bytes.Buffer) }

// freeBuffer returns a buffer to the pool. One that grew for a very long address is left to the garbage collector.
func freeBuffer(b *bytes.Buffer) {
	if b.Cap() <= 2*maxBuffered {
		b.Reset()
		buffers.Put(b)
	}
}

// buffered returns the content of a buffer.
func buffered(b *bytes.Buffer) content {
	return content{size: int64(b.Len()), text: b.Bytes(), buffer: b}
}
