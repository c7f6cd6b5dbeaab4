package integration

import (
	"net"
	"os"
	"testing"
)

// TestUnixSocketOfAnotherUser asks at a Unix socket in a folder that the user may not enter. Root may enter every
// folder, so the command runs as another user then.
func TestUnixSocketOfAnotherUser(t *testing.T) {
	dir := shortDir(t)
	socket := dir + "/s"
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
	})
	// the test's own folder is root's, too
	cmd := unprivileged(commandIn(t, "/", "not-found", "report", "--address=unix/"+socket))
	fails(t, cmd, "connect: permission denied")
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
