//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// The build of the current folder, and that of the commit that -against names.
const newBuild, oldBuild = "new", "old"

// alignments are those of the functions in a build. They change a server's CPU time by 1 to 3 %, without any change of the
// source. So each start takes the next one. The linker's default for amd64 is 32.
var alignments = []int{16, 32, 64}

// binary returns the path of a build with one of the alignments. Both builds have paths of the same length.
func binary(dir, build string, alignment int) string {
	return fmt.Sprintf("%s/caddy-%s-%d", dir, build, alignment)
}

// tmpfs is where the binaries are. Where a binary lies on a disk changes a server's CPU time by up to 5 %.
const tmpfs = "/dev/shm"

func makeTmpfsDir() (string, error) {
	err := checkTmpfs(tmpfs)
	if err != nil {
		return "", err
	}
	return os.MkdirTemp(tmpfs, "bench")
}

func checkTmpfs(dir string) error {
	var info unix.Statfs_t
	err := unix.Statfs(dir, &info)
	if err != nil {
		return fmt.Errorf("looking for a tmpfs at %s: %w", dir, err)
	}
	if info.Type != unix.TMPFS_MAGIC {
		return fmt.Errorf("%s is not a tmpfs, and the servers have to run from one", dir)
	}
	if info.Flags&unix.ST_NOEXEC != 0 {
		return fmt.Errorf("%s is mounted with noexec: mount -o remount,exec %[1]s", dir)
	}
	return nil
}

// buildAll builds Caddy in each alignment, from the current folder and from the commit that -against names.
func buildAll(ctx context.Context, dir string) error {
	err := build(ctx, ".", dir, newBuild)
	if err != nil || *against == "" {
		return err
	}
	source := filepath.Join(dir, "source")
	err = command(ctx, ".", "git", "worktree", "add", "--detach", source, *against)
	if err != nil {
		return err
	}
	// The worktree goes even if an interrupt has ended ctx.
	defer command(context.WithoutCancel(ctx), ".", "git", "worktree", "remove", "--force", source)
	return build(ctx, source, dir, oldBuild)
}

// build builds Caddy from a folder. With -trimpath, the same source gives the same binary, whatever the folder.
func build(ctx context.Context, source, dir, name string) error {
	for _, alignment := range alignments {
		fmt.Fprintf(os.Stderr, "building the %s Caddy, with functions at multiples of %d\n", name, alignment)
		flags := fmt.Sprintf("-ldflags=-funcalign=%d", alignment)
		err := command(ctx, source, "go", "build", "-trimpath", "-buildvcs=false", flags,
			"-o", binary(dir, name, alignment), "./cmd/caddy")
		if err != nil {
			return err
		}
	}
	return nil
}

// command runs a command in a folder. Its error has what the command wrote.
func command(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("running %s %s: %w\n%s", name, args[0], err, out)
	}
	return nil
}
