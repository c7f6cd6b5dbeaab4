package userfile

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"unsafe"
)

// TestTerminalDoesNotBecomeCaddys opens a pseudo-terminal in the place of a page. The test runs itself again as systemd
// and containers run Caddy: as the first process of a session, without a terminal. Whoever holds the other end of a
// terminal that becomes Caddy's could press ^C.
func TestTerminalDoesNotBecomeCaddys(t *testing.T) {
	const environment = "TERMINAL_IN_PLACE_OF_A_PAGE"
	if terminal := os.Getenv(environment); terminal != "" {
		_, _, err := openRegular(terminal)
		wantError(t, terminal, err, "it is not a regular file")
		if _, err := os.Open("/dev/tty"); !errors.Is(err, syscall.ENXIO) {
			t.Errorf("opening the terminal of the process: got the error %v, want that it has none", err)
		}
		return
	}
	alone := exec.Command(os.Args[0], "-test.run=^TestTerminalDoesNotBecomeCaddys$")
	alone.Env = append(os.Environ(), environment+"="+newTerminal(t))
	alone.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if output, err := alone.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

// newTerminal returns the path of a pseudo-terminal, whose other end the test holds.
func newTerminal(t *testing.T) (path string) {
	t.Helper()
	end, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end.Close() })
	var number, unlocked int32
	control(t, end, syscall.TIOCSPTLCK, &unlocked)
	control(t, end, syscall.TIOCGPTN, &number)
	return fmt.Sprintf("/dev/pts/%d", number)
}

func control(t *testing.T, file *os.File, request uintptr, value *int32) {
	t.Helper()
	_, _, err := syscall.Syscall(syscall.SYS_IOCTL, file.Fd(), request, uintptr(unsafe.Pointer(value)))
	if err != 0 {
		t.Fatal(err)
	}
}
