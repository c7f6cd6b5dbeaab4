package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// machine says when and where something is measured.
func machine() string {
	read := func(file, pattern string) string {
		content, _ := os.ReadFile(file)
		return cmp.Or(submatch(regexp.MustCompile(pattern), string(content)), "unknown")
	}
	return fmt.Sprintf("Measured on %s: %s, %d cores, Linux %s, %s", time.Now().Format(time.DateOnly),
		read("/proc/cpuinfo", `(?m)^model name\s*: (.+)$`), runtime.NumCPU(), read("/proc/sys/kernel/osrelease", `(.+)`), runtime.Version())
}

// environment says what was measured on, and with what.
func (b *bench) environment(ctx context.Context) string {
	version := func(program string, args ...string) string {
		out, _ := exec.CommandContext(ctx, b.programs[program], args...).CombinedOutput() // wrk fails after it
		return submatch(regexp.MustCompile(`(\d+(?:\.\d+)+)`), string(out))
	}
	return fmt.Sprintf("%s, Caddy %s, nginx %s, wrk %s, h2load %s.",
		machine(), b.caddy, version("nginx", "-v"), version("wrk", "-v"), version("h2load", "--version"))
}

// ticks are the time that the server's core has worked, and the server itself.
type ticks struct {
	coreTime
	server float64
}

func (s *server) ticks() (t ticks, err error) {
	if t.coreTime, err = readCoreTime(serverCore); err != nil {
		return t, err
	}
	if t.server, err = processTime(s.pid); err != nil {
		return t, fmt.Errorf("is the server gone? %w\n%s", err, s.logged())
	}
	return t, nil
}

// coreTime is how a core has spent its time since the machine started, in ticks.
type coreTime struct {
	total, busy float64
	processes   float64 // of busy, what is no interrupt's
}

func readCoreTime(core int) (t coreTime, err error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return t, err
	}
	for line := range strings.Lines(string(b)) {
		fields := strings.Fields(line)
		if fields[0] != "cpu"+strconv.Itoa(core) {
			continue
		}
		var ticks [8]float64 // user, nice, system, idle, iowait, irq, softirq, steal
		for i := range ticks {
			if ticks[i], err = strconv.ParseFloat(fields[1+i], 64); err != nil {
				return t, fmt.Errorf("reading /proc/stat: %w", err)
			}
			t.total += ticks[i]
		}
		t.busy = t.total - ticks[3] - ticks[4]
		t.processes = t.busy - ticks[5] - ticks[6]
		return t, nil
	}
	return t, fmt.Errorf("no core %d in /proc/stat", core)
}

// processTime is the time that a process has run since it started, in ticks.
func processTime(pid int) (float64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(b), ") ") // behind the name
	fields := strings.Fields(rest)
	user, err := strconv.ParseFloat(fields[11], 64)
	if err != nil {
		return 0, fmt.Errorf("reading the time of process %d: %w", pid, err)
	}
	system, err := strconv.ParseFloat(fields[12], 64)
	return user + system, err
}

// memory gives a field of a process's status that is a size, in MiB.
func memory(pid int, field string) (float64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			kB, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 64)
			return kB / 1024, err
		}
	}
	return 0, fmt.Errorf("no %s in the status of process %d", field, pid)
}
