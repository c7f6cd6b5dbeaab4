//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// The build of the current folder, and that of the one that -against names.
const newBuild, oldBuild = "new", "old"

// alignments are those of the functions in a build. They change a server's CPU time by 1 to 3 %, without any change of
// the source. So each start takes the next one. The linker's default for amd64 is 32.
var alignments = []int{16, 32, 64}

// binary returns the path of a build with one of the alignments. Both builds have paths of the same length.
func binary(dir, build string, alignment int) string {
	return fmt.Sprintf("%s/caddy-%s-%d", dir, build, alignment)
}

// makeTmpfsDir makes a folder for the binaries. Where a binary lies on a disk changes a server's CPU time by up to 5 %.
func makeTmpfsDir() (string, error) {
	const tmpfs = "/dev/shm"
	var info unix.Statfs_t
	err := unix.Statfs(tmpfs, &info)
	if err != nil || info.Type != unix.TMPFS_MAGIC || info.Flags&unix.ST_NOEXEC != 0 {
		return "", fmt.Errorf("%s has to be a tmpfs from which programs run: mount -o remount,exec %[1]s (%v)", tmpfs, err)
	}
	return os.MkdirTemp(tmpfs, "bench")
}

// build builds Caddy from a folder, in each alignment. With -trimpath, the same source gives the same binary, whatever
// the folder.
func build(ctx context.Context, source, dir, name string) error {
	for _, alignment := range alignments {
		fmt.Fprintf(os.Stderr, "building the %s Caddy, with functions at multiples of %d\n", name, alignment)
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
			fmt.Sprintf("-ldflags=-funcalign=%d", alignment), "-o", binary(dir, name, alignment), "./cmd/caddy")
		cmd.Dir = source
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("building %s: %w", source, err)
		}
	}
	return nil
}
