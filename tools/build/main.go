// Command build builds a custom Caddy from a manifest, which is an xcaddy.Builder in JSON. From the root of the
// repository,
//
//	go run -C tools/build . [-manifest xcaddy.json] [-output caddy]
//
// reads xcaddy.json and writes the binary caddy. The paths of the flags are relative to the repository, and the paths
// of replacements to the manifest.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caddyserver/xcaddy"
	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// repository is the root of the repository, seen from where `go run -C tools/build .` runs.
const repository = "../.."

func main() {
	log.SetFlags(0)
	manifest := flag.String("manifest", "xcaddy.json", "the `file` that says what to build, relative to the repository")
	output := flag.String("output", "caddy", "the `file` to write, relative to the repository")
	flag.Parse()
	if flag.NArg() > 0 {
		log.Fatalf("unexpected argument %q", flag.Arg(0))
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, inRepository(*manifest), inRepository(*output))
	if err != nil {
		log.Fatal(err)
	}
}

func inRepository(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(repository, path)
}

func run(ctx context.Context, manifest, output string) error {
	builder, err := readManifest(manifest)
	if err != nil {
		return err
	}
	proxy, err := os.MkdirTemp("", "goproxy")
	if err != nil {
		return err
	}
	defer os.RemoveAll(proxy)
	if err := offerReplaced(ctx, builder, proxy); err != nil {
		return fmt.Errorf("preparing the replacements: %w", err)
	}
	return builder.Build(ctx, output)
}

// readManifest reads a manifest. It refuses mistakes with which xcaddy and Go would build something else than the
// manifest says.
func readManifest(file string) (xcaddy.Builder, error) {
	var b xcaddy.Builder
	content, err := os.ReadFile(file)
	if err != nil {
		return b, fmt.Errorf("reading the manifest: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(content))
	d.DisallowUnknownFields()
	err = d.Decode(&b)
	if err != nil {
		return b, fmt.Errorf("%s: %w; the keys are those of xcaddy's Builder", file, err)
	}
	_, err = d.Token()
	if !errors.Is(err, io.EOF) {
		return b, fmt.Errorf("%s: there is something after the manifest's closing brace", file)
	}

	for i, r := range b.Replacements {
		path := string(r.New)
		if filepath.IsAbs(path) || !modfile.IsDirectoryPath(path) {
			continue
		}
		dir, err := filepath.Abs(filepath.Join(filepath.Dir(file), path))
		if err != nil {
			return b, err
		}
		b.Replacements[i].New = xcaddy.ReplacementPath(dir)
	}
	if b.CaddyVersion == "" {
		return b, fmt.Errorf("%s: caddy_version is missing; pin it as in v1.2.3", file)
	}
	for _, p := range b.Plugins {
		isReplaced := slices.ContainsFunc(b.Replacements, func(r xcaddy.Replace) bool {
			return string(r.Old) == p.PackagePath
		})
		if p.Version == "" && !isReplaced {
			return b, fmt.Errorf("%s: plugin %q has no version; pin it as in v1.2.3", file, p.PackagePath)
		}
	}
	return b, nil
}

// offerReplaced puts a proxy before the others, for the modules that a folder replaces. xcaddy asks for the versions of
// these modules, too, and if a proxy refuses a module that is not published, the build ends. The proxy answers with an
// empty list of versions, so there is only the replacement.
func offerReplaced(ctx context.Context, b xcaddy.Builder, proxy string) error {
	for _, r := range b.Replacements {
		if !filepath.IsAbs(string(r.New)) {
			continue
		}
		path, _, _ := strings.Cut(string(r.Old), " ")
		escaped, err := module.EscapePath(path)
		if err != nil {
			return err
		}
		dir := filepath.Join(proxy, filepath.FromSlash(escaped), "@v")
		err = os.MkdirAll(dir, 0o755)
		if err != nil {
			return err
		}
		list := filepath.Join(dir, "list")
		err = os.WriteFile(list, nil, 0o644)
		if err != nil {
			return err
		}
	}
	others, err := exec.CommandContext(ctx, "go", "env", "GOPROXY").Output()
	if err != nil {
		return fmt.Errorf("go env GOPROXY: %w", err)
	}
	first := "file://" + filepath.ToSlash(proxy)
	rest := strings.TrimSpace(string(others))
	return os.Setenv("GOPROXY", first+","+rest)
}
