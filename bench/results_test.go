package main

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

// measured gives the results of two rounds, the second of them on a slower machine.
func measured() *results {
	first, second := contender{name: "`not_found`"}, contender{name: "nginx, `return <404>`"}
	runs := func(rate, core float64) map[string][]sample {
		m := make(map[string][]sample)
		for _, p := range protocols {
			m[p.name] = []sample{
				{rate: rate, median: 1, p99: 3, core: core, others: 0.01, peak: 60},
				{rate: rate / 2, median: 2, p99: 5, core: core, others: 0.03, peak: 70},
			}
		}
		return m
	}
	servers := []*server{{contender: first, runs: runs(40000, 1)}, {contender: second, runs: runs(60000, 0.5)}}
	grown := []*grown{newGrown(first)}
	for _, connections := range growth {
		grown[0].runs[connections] = runs(1000, 1)[chartedProtocol]
	}
	grown[0].rest = []float64{50, 52}
	groups := []group{{name: "answering", title: "Nothing answers"}, {name: "replacing", title: "It's replaced"}}
	return newResults("Measured here.", 2, 3*time.Second, groups, [][]*server{servers, servers}, grown)
}

func TestResults(t *testing.T) {
	r := measured()
	want := figures{Rate: 45000, Ratio: 1.5, MedianMS: 1.5, P99MS: 4, Core: 0.5, PeakMiB: 65}
	if got := r.Groups[0].Contenders[1].Protocols["HTTP/2, TLS"]; got != want {
		t.Errorf("figures %+v, want %+v", got, want)
	}
	if r.Growth[0].RestMiB != 51 {
		t.Errorf("memory at rest %v, want 51", r.Growth[0].RestMiB)
	}

	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var again results
	if err := json.Unmarshal(b, &again); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(&again, r) {
		t.Errorf("from JSON: %+v, want %+v", again, r)
	}
}

func TestTablesOfResults(t *testing.T) {
	got := measured().markdown()
	for _, want := range []string{
		"Measured here.\n",
		"Medians of 2 rounds of 3 s.",
		"Other processes had 2.0% of the servers' core.",
		"### Nothing answers\n",
		"| `not_found`           |   30,000 |  1.00 |        30,000 |  1.00 |      30,000 |  1.00 |\n",
		"| nginx, `return <404>` |  45,000† |  1.50 |       45,000† |  1.50 |     45,000† |  1.50 |\n",
		"| nginx, `return <404>`   |  1.50 ms | 4.00 ms |       1.50 ms | 4.00 ms |\n",
		"| at rest                  |            |                 |         | 51.0 MiB |\n",
		"| 1,000                    |        750 |         1.50 ms | 4.00 ms | 65.0 MiB |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
