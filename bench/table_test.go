package main

import "testing"

func TestMedian(t *testing.T) {
	for name, tc := range map[string]struct {
		values []float64
		want   float64
	}{
		"one":            {[]float64{7}, 7},
		"odd, unsorted":  {[]float64{9, 1, 5}, 5},
		"even":           {[]float64{4, 1, 3, 100}, 3.5},
		"one far out":    {[]float64{10, 11, 12, 13, 9000}, 12},
		"several equals": {[]float64{2, 2, 2, 1}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := tc.values[0]
			if got := median(tc.values); got != tc.want {
				t.Errorf("median of %v is %v, want %v", tc.values, got, tc.want)
			}
			if tc.values[0] != first {
				t.Error("the values are sorted now; their order is that of the rounds")
			}
		})
	}
}

// TestRatioIsOfTheSameRound has a round in which everything was slow.
func TestRatioIsOfTheSameRound(t *testing.T) {
	base := []float64{100, 10, 200}
	values := []float64{50, 5, 100}
	if got := medianRatio(values, base); got != 0.5 {
		t.Errorf("ratio %v, want 0.5", got)
	}
	// the medians of both would have the ratio 0.3
	if got := medianRatio([]float64{30, 6, 180}, base); got != 0.6 {
		t.Errorf("ratio %v, want 0.6", got)
	}
}

func TestTable(t *testing.T) {
	got := table([][]string{
		{"Requests/s", "HTTP/1.1", "ratio"},
		{"`not_found`", "12,345", "1.00"},
		{"other", "7†", "0.5"},
	})
	const want = `| Requests/s  | HTTP/1.1 | ratio |
|-------------|---------:|------:|
| ` + "`not_found`" + ` |   12,345 |  1.00 |
| other       |       7† |   0.5 |
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestThousands(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 999.4: "999", 999.5: "1,000", 12345: "12,345", 1234567.8: "1,234,568", -999: "-999", -1000: "-1,000"} {
		if got := thousands(v); got != want {
			t.Errorf("%v is written %s, want %s", v, got, want)
		}
	}
}
