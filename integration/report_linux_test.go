package integration

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

// TestUnixSocketOfAnotherUser asks at a Unix socket in a folder that the user may not enter. Root may enter every
// folder, so the command runs as another user then.
func TestUnixSocketOfAnotherUser(t *testing.T) {
	dir, err := os.MkdirTemp("", "") // a socket's path has to be short
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = os.Chmod(dir, 0o700)
		ln.Close()
		os.RemoveAll(dir)
	})
	cmd := reportCommand(t, "--address", "unix/"+socket)
	if os.Getuid() == 0 {
		cmd.SysProcAttr = asNobody
		cmd.Path = "/proc/self/exe" // the test's own folder is root's, too
		cmd.Dir = "/"
	}
	fails(t, cmd, "this user may not open the admin API at unix/"+socket+"; run it as root, or as Caddy's user")
}

// TestReportThatCannotBePrintedFails prints to a full device.
func TestReportThatCannotBePrintedFails(t *testing.T) {
	s := startReporting(t, "http://:0 {\nnot_found {\nreport\n}\n}")
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	cmd := reportCommand(t, "--address", s.admin)
	cmd.Stdout = full
	fails(t, cmd, "printing the report: write /dev/stdout: no space left on device")
}
