package integration

import (
	"os"
	"testing"
)

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
