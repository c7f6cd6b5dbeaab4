package userfile

import (
	"bytes"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"go.uber.org/zap"
)

// keptFile is a file whose page is kept in memory. Handlers share it, including those of the next config, so that the
// last good page outlasts a reload. It therefore refers to nothing that belongs to a handler, such as a logger. It is
// freed with the last handler that uses it.
type keptFile struct {
	path     string // absolute
	format   Format
	last     atomic.Pointer[snapshot] // as it was last read; nil: it has not been read
	mistakes OnceAMinute

	reading sync.Mutex // held while the file is read
	readAt  time.Time
}

// snapshot is a file as it was read at some time.
type snapshot struct {
	text []byte
	err  error // why it cannot be used
	page any   // the last one that could be used; nil: none
}

type keptKey struct{ path, format string }

// keptFiles are the files that some handler uses.
var keptFiles = struct {
	sync.Mutex
	byKey map[keptKey]weak.Pointer[keptFile]
}{byKey: make(map[keptKey]weak.Pointer[keptFile])}

// keptFileOf returns the file of a path. It may not have been read yet.
func keptFileOf(path string, format Format) *keptFile {
	key := keptKey{path, format.Name}
	keptFiles.Lock()
	defer keptFiles.Unlock()
	if f := keptFiles.byKey[key].Value(); f != nil {
		return f
	}
	f := &keptFile{path: path, format: format}
	keptFiles.byKey[key] = weak.Make(f)
	runtime.AddCleanup(f, forget, key)
	return f
}

// forget drops a key, unless a newer file uses it.
func forget(key keptKey) {
	keptFiles.Lock()
	defer keptFiles.Unlock()
	if keptFiles.byKey[key].Value() == nil {
		delete(keptFiles.byKey, key)
	}
}

// pause is the shortest time between two readings of a kept file.
const pause = time.Second

// reloadForConfig reads the file for a config that loads. A mistake that was logged before is logged again, at most
// once a minute, whatever the number of handlers and of reloads.
func (f *keptFile) reloadForConfig(logger *zap.Logger) {
	f.reading.Lock()
	defer f.reading.Unlock()
	f.reloadIfDue(logger)
	if f.last.Load().err != nil && f.mistakes.isDue() {
		f.log(logger)
	}
}

// reloadForRequest reads the file for a request. Only one request reads at a time; the others use the current page.
func (f *keptFile) reloadForRequest(logger *zap.Logger) {
	if f.reading.TryLock() {
		defer f.reading.Unlock()
		f.reloadIfDue(logger)
	}
}

// reloadIfDue reads the file, if that is due, and logs a change.
func (f *keptFile) reloadIfDue(logger *zap.Logger) {
	if time.Since(f.readAt) < pause {
		return
	}
	isNew := f.last.Load() == nil // reloadForConfig logs a mistake in it
	if hasChanged := f.reload(); hasChanged && !isNew {
		f.log(logger)
	}
}

func (f *keptFile) log(logger *zap.Logger) {
	logger = logger.With(zap.String("template", f.path))
	last := f.last.Load()
	if last.err == nil {
		logger.Info("the changed file of a page is in use")
		return
	}
	f.mistakes.begin()
	if last.page == nil {
		logger.Error("the file of a page cannot be used; another page is sent until it can", zap.Error(last.err))
	} else {
		logger.Error("the changed file of a page cannot be used; the last good page stays", zap.Error(last.err))
	}
}

// reload reads the file, and parses it if it has changed. It reports whether the text or the error differs from the
// previous one. The time and the size would not do: a chmod, after which the file cannot be read, changes neither.
func (f *keptFile) reload() (hasChanged bool) {
	f.readAt = time.Now()
	text, err := readFile(f.path)
	next := &snapshot{text: text, err: err}
	if before := f.last.Load(); before != nil {
		if bytes.Equal(before.text, text) && (err == nil || fmt.Sprint(before.err) == fmt.Sprint(err)) {
			return false // a text that was refused before is refused again
		}
		next.page = before.page
	}
	if err == nil {
		var page any
		page, next.err = f.format.Parse(filepath.Base(f.path), text)
		if next.err == nil {
			next.page = page
		}
	}
	f.last.Store(next)
	return true
}
