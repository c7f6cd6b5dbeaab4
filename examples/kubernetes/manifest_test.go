// Package kubernetes checks the manifests. It is a module of its own, so that the plugin does not depend on
// Kubernetes.
package kubernetes

import (
	"bytes"
	"os"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"
)

// TestManifests decodes each object strictly. It checks what refers to what, and what the pod may do.
func TestManifests(t *testing.T) {
	var deployment appsv1.Deployment
	var service corev1.Service
	var ingress networkingv1.Ingress
	var access networkingv1.NetworkPolicy
	decode(t, "manifest.yaml", map[string]any{
		"apps/v1 Deployment not-found":                 &deployment,
		"v1 Service not-found":                         &service,
		"networking.k8s.io/v1 Ingress example":         &ingress,
		"networking.k8s.io/v1 NetworkPolicy not-found": &access,
	})
	var www, others gatewayv1.HTTPRoute
	decode(t, "gateway.yaml", map[string]any{
		"gateway.networking.k8s.io/v1 HTTPRoute www":         &www,
		"gateway.networking.k8s.io/v1 HTTPRoute other-hosts": &others,
	})

	pod := deployment.Spec.Template
	for _, selector := range []map[string]string{
		deployment.Spec.Selector.MatchLabels,
		service.Spec.Selector,
		access.Spec.PodSelector.MatchLabels,
	} {
		if len(selector) == 0 || selector["app"] != pod.Labels["app"] {
			t.Errorf("the selector %v does not select pods with %v", selector, pod.Labels)
		}
	}
	container := pod.Spec.Containers[0]
	mayDoLittle(t, &pod)
	for _, arg := range []string{container.ReadinessProbe.HTTPGet.Path, "--trusted-proxies"} {
		if !slices.Contains(container.Args, arg) {
			t.Errorf("the arguments %q lack %s", container.Args, arg)
		}
	}

	port := service.Spec.Ports[0]
	if port.TargetPort.StrVal != container.Ports[0].Name {
		t.Errorf("the service goes to the port %s", port.TargetPort.StrVal)
	}
	defaultBackend := ingress.Spec.DefaultBackend.Service
	if defaultBackend.Name != service.Name || defaultBackend.Port.Name != port.Name {
		t.Errorf("the default backend is %v", defaultBackend)
	}
	if class := ingress.Spec.IngressClassName; class == nil || *class == "" {
		t.Error("the ingress has no class, so only a default class would take it")
	}
	onlyTheControllerConnects(t, &access, container.Ports[0].Name)

	for _, route := range []gatewayv1.HTTPRoute{www, others} {
		leavesNothingToTheGateway(t, &route, &service)
	}
	if len(www.Spec.Hostnames) == 0 {
		t.Error("the route www has no hosts")
	}
	if len(others.Spec.Hostnames) > 0 {
		t.Errorf("the route of all other hosts has only the hosts %v", others.Spec.Hostnames)
	}
}

// mayDoLittle checks that the pod keeps to the restricted Pod Security Standard, has no token, and writes no files.
func mayDoLittle(t *testing.T, pod *corev1.PodTemplateSpec) {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	checks := evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec)
	if result := policy.AggregateCheckResults(checks); !result.Allowed {
		t.Errorf("the restricted Pod Security Standard forbids the pod: %s", result.ForbiddenDetail())
	}
	if token := pod.Spec.AutomountServiceAccountToken; token == nil || *token {
		t.Error("the pod has a service account token")
	}
	security := pod.Spec.Containers[0].SecurityContext
	if readOnly := security.ReadOnlyRootFilesystem; readOnly == nil || !*readOnly {
		t.Error("the pod can write files")
	}
}

// leavesNothingToTheGateway checks that a route ends with a rule that sends every path to the service. Otherwise the
// Gateway answers some of them with its own 404.
func leavesNothingToTheGateway(t *testing.T, route *gatewayv1.HTTPRoute, service *corev1.Service) {
	t.Helper()
	rules := route.Spec.Rules
	last := rules[len(rules)-1]
	if len(last.Matches) > 0 || len(last.BackendRefs) != 1 {
		t.Fatalf("%s: the last rule is %v", route.Name, last)
	}
	backend := last.BackendRefs[0]
	isPort := backend.Port != nil && *backend.Port == service.Spec.Ports[0].Port
	if !isPort || string(backend.Name) != service.Name {
		t.Errorf("%s: the last rule goes to %v", route.Name, backend)
	}
	gateways := route.Spec.ParentRefs
	if len(gateways) != 1 || gateways[0].Name != "example" {
		t.Errorf("%s: the gateways are %v", route.Name, gateways)
	}
}

// onlyTheControllerConnects checks that a policy lets some pods of one namespace connect to the port, and nothing else.
// If the policy had two peers in place of one with both selectors, every pod of the namespace could connect.
func onlyTheControllerConnects(t *testing.T, policy *networkingv1.NetworkPolicy, port string) {
	t.Helper()
	types := policy.Spec.PolicyTypes
	if len(types) != 1 || types[0] != networkingv1.PolicyTypeIngress {
		t.Errorf("the policy is for %v", types)
	}
	if len(policy.Spec.Ingress) != 1 {
		t.Fatalf("the policy has the rules %v, want one", policy.Spec.Ingress)
	}
	rule := policy.Spec.Ingress[0]
	if len(rule.From) != 1 || len(rule.Ports) != 1 {
		t.Fatalf("the policy has the rule %v, want one peer and one port", rule)
	}
	peer := rule.From[0]
	if peer.NamespaceSelector == nil || len(peer.NamespaceSelector.MatchLabels) == 0 {
		t.Error("the policy lets every namespace connect")
	}
	if peer.PodSelector == nil || len(peer.PodSelector.MatchLabels) == 0 {
		t.Error("the policy lets every pod of the namespace connect")
	}
	if allowed := rule.Ports[0].Port; allowed == nil || allowed.StrVal != port {
		t.Errorf("the policy is for the port %v, want %s", allowed, port)
	}
}

// decode decodes the objects of a file, which are known by their version, kind and name, and are all there. An unknown
// or repeated field is an error.
func decode(t *testing.T, file string, objects map[string]any) {
	t.Helper()
	manifest, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for document := range bytes.SplitSeq(manifest, []byte("\n---\n")) {
		var object struct {
			APIVersion, Kind string
			Metadata         struct{ Name string }
		}
		if err := yaml.Unmarshal(document, &object); err != nil {
			t.Fatal(err)
		}
		name := object.APIVersion + " " + object.Kind + " " + object.Metadata.Name
		into, ok := objects[name]
		if !ok {
			t.Fatalf("%s has an unexpected or repeated %q", file, name)
		}
		delete(objects, name)
		if err := yaml.UnmarshalStrict(document, into); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(objects) > 0 {
		t.Fatalf("%s has no %v", file, objects)
	}
}
