// Command build builds a custom Caddy from a manifest, which is an xcaddy.Builder in JSON. From the root of the
// repository,
//
//	go run -C build . [-manifest xcaddy.json] [-output caddy]
//
// reads xcaddy.json and writes the binary caddy. Paths are relative to the repository, those of replacements to the
// manifest.
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
	"golang.org/x/mod/semver"
)

const caddyModule = "github.com/caddyserver/caddy/v2"

// repository is the root of the repository, seen from where `go run -C build .` runs.
const repository = ".."

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
	if err := run(ctx, inRepository(*manifest), inRepository(*output)); err != nil {
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
	goMod, err := os.ReadFile(filepath.Join(repository, "go.mod"))
	if err != nil {
		return err
	}
	builder, err := readManifest(manifest, goMod)
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

// readManifest reads a manifest, and refuses what xcaddy would not do as it is written. goMod is the go.mod of the
// plugin, which pins Caddy.
func readManifest(file string, goMod []byte) (xcaddy.Builder, error) {
	var b xcaddy.Builder
	content, err := os.ReadFile(file)
	if err != nil {
		return b, fmt.Errorf("reading the manifest: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(content))
	d.DisallowUnknownFields()
	if err := d.Decode(&b); err != nil {
		return b, fmt.Errorf("%s: %w; the keys are those of xcaddy's Builder", file, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return b, fmt.Errorf("%s: there is something after the manifest's closing brace", file)
	}

	pinned, err := caddyVersion(goMod)
	if err != nil {
		return b, err
	}
	switch b.CaddyVersion {
	case pinned:
	case "":
		return b, fmt.Errorf("%s: caddy_version is missing; it is %s in go.mod", file, pinned)
	default:
		return b, fmt.Errorf("%s: caddy_version is %s, but %s in go.mod; make them the same", file, b.CaddyVersion, pinned)
	}

	for i, r := range b.Replacements {
		if r.Old == "" || r.New == "" {
			return b, fmt.Errorf("%s: replacement %d needs both old and new", file, i+1)
		}
		if local(r.New) {
			dir := string(r.New)
			if !filepath.IsAbs(dir) {
				if dir, err = filepath.Abs(filepath.Join(filepath.Dir(file), dir)); err != nil {
					return b, err
				}
			}
			if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
				return b, fmt.Errorf("%s: replacement of %s: %w", file, r.Old, err)
			}
			b.Replacements[i].New = xcaddy.ReplacementPath(dir)
		}
	}
	if len(b.Plugins) == 0 {
		return b, fmt.Errorf("%s: there are no plugins", file)
	}
	for i, p := range b.Plugins {
		replaced := slices.ContainsFunc(b.Replacements, func(r xcaddy.Replace) bool { return string(r.Old) == p.PackagePath })
		switch {
		case p.PackagePath == "":
			return b, fmt.Errorf("%s: plugin %d has no module_path", file, i+1)
		case p.Version == "" && !replaced:
			return b, fmt.Errorf("%s: plugin %s has no version; pin it as in v1.2.3", file, p.PackagePath)
		case p.Version != "" && !semver.IsValid(p.Version):
			return b, fmt.Errorf("%s: plugin %s has the version %q; write it as in v1.2.3", file, p.PackagePath, p.Version)
		}
	}
	return b, nil
}

// local reports whether a replacement is a folder rather than a module.
func local(path xcaddy.ReplacementPath) bool {
	return modfile.IsDirectoryPath(string(path)) || filepath.IsAbs(string(path)) || path == "."
}

// caddyVersion returns the version of Caddy that a go.mod requires.
func caddyVersion(goMod []byte) (string, error) {
	f, err := modfile.ParseLax("go.mod", goMod, nil)
	if err != nil {
		return "", err
	}
	for _, r := range f.Require {
		if r.Mod.Path == caddyModule {
			return r.Mod.Version, nil
		}
	}
	return "", fmt.Errorf("go.mod does not require %s", caddyModule)
}

// offerReplaced puts a proxy before the others that knows the modules which are replaced by a folder. xcaddy asks for
// their versions all the same, and a proxy may refuse a module that is not published, which ends the build. An empty
// list of versions says that there is only the replacement.
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
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "list"), nil, 0o644); err != nil {
			return err
		}
	}
	others, err := exec.CommandContext(ctx, "go", "env", "GOPROXY").Output()
	if err != nil {
		return fmt.Errorf("go env GOPROXY: %w", err)
	}
	return os.Setenv("GOPROXY", "file://"+filepath.ToSlash(proxy)+","+strings.TrimSpace(string(others)))
}
