// Package kubernetes checks the manifest. It is a module of its own, so that the plugin's go.mod knows nothing of
// Kubernetes.
package kubernetes

import (
	"os"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// TestManifest decodes each object strictly: an unknown or repeated field is an error.
func TestManifest(t *testing.T) {
	manifest, err := os.ReadFile("manifest.yaml")
	if err != nil {
		t.Fatal(err)
	}

	var deployment appsv1.Deployment
	var service corev1.Service
	var ingress networkingv1.Ingress
	objects := map[string]any{"apps/v1 Deployment": &deployment, "v1 Service": &service, "networking.k8s.io/v1 Ingress": &ingress}
	for document := range strings.SplitSeq(string(manifest), "\n---\n") {
		var kind struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
			t.Fatal(err)
		}
		name := kind.APIVersion + " " + kind.Kind
		object, ok := objects[name]
		if !ok {
			t.Fatalf("there is an unexpected or repeated %q", name)
		}
		delete(objects, name)
		if err := yaml.UnmarshalStrict([]byte(document+"\n"), object); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(objects) > 0 {
		t.Fatalf("there is no %v", objects)
	}

	// what refers to what
	pod := deployment.Spec.Template
	for _, selector := range []map[string]string{deployment.Spec.Selector.MatchLabels, service.Spec.Selector} {
		if len(selector) == 0 || selector["app"] != pod.Labels["app"] {
			t.Errorf("the selector %v does not select pods with %v", selector, pod.Labels)
		}
	}
	container := pod.Spec.Containers[0]
	if !slices.Contains(container.Args, container.ReadinessProbe.HTTPGet.Path) {
		t.Errorf("the probe asks for %s, which %q does not answer", container.ReadinessProbe.HTTPGet.Path, container.Args)
	}
	if port := service.Spec.Ports[0]; port.TargetPort.StrVal != container.Ports[0].Name {
		t.Errorf("the service goes to the port %s", port.TargetPort.StrVal)
	}
	if backend := ingress.Spec.DefaultBackend.Service; backend.Name != service.Name || backend.Port.Name != service.Spec.Ports[0].Name {
		t.Errorf("the default backend is %v", backend)
	}
}
