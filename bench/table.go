package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// median gives the median of values, of which there is at least one.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// medianRatio gives the median of the ratios of values that were measured in the same round.
func medianRatio(values, base []float64) float64 {
	ratios := make([]float64, len(values))
	for i := range values {
		ratios[i] = values[i] / base[i]
	}
	return median(ratios)
}

// table is a table in Markdown. All columns but the first are numbers.
func table(rows [][]string) string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	var b strings.Builder
	for n, row := range rows {
		for i, cell := range row {
			if i == 0 {
				fmt.Fprintf(&b, "| %-*s |", widths[i], cell)
			} else {
				fmt.Fprintf(&b, " %*s |", widths[i], cell)
			}
		}
		b.WriteByte('\n')
		if n > 0 {
			continue
		}
		for i, width := range widths {
			if i == 0 {
				b.WriteString("|" + strings.Repeat("-", width+2) + "|")
			} else {
				b.WriteString(strings.Repeat("-", width+1) + ":|")
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// thousands writes a number without decimals, as in 12,345.
func thousands(v float64) string {
	s, sign := strconv.FormatFloat(v, 'f', 0, 64), ""
	if s[0] == '-' {
		s, sign = s[1:], "-"
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}
