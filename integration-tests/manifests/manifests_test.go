// Package manifests decodes the manifests of deploy/kubernetes into the types of Kubernetes.
package manifests

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// objects are those of one file.
type objects struct {
	deployment appsv1.Deployment
	service    corev1.Service
	budget     policyv1.PodDisruptionBudget
	policy     networkingv1.NetworkPolicy
}

// decode reads a document into the type that its kind has. An unknown field is an error, also one that
// differs in case alone.
func (o *objects) decode(document []byte) error {
	var head struct{ APIVersion, Kind string }
	if err := yaml.Unmarshal(document, &head); err != nil {
		return err
	}
	targets := map[string]any{
		"apps/v1 Deployment": &o.deployment, "v1 Service": &o.service,
		"policy/v1 PodDisruptionBudget": &o.budget, "networking.k8s.io/v1 NetworkPolicy": &o.policy,
	}
	target, known := targets[head.APIVersion+" "+head.Kind]
	if !known {
		return fmt.Errorf("there is no %s %s", head.APIVersion, head.Kind)
	}
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return err
	}
	strict, err := json.UnmarshalStrict(text, target)
	return errors.Join(append(strict, err)...)
}

func readObjects(t *testing.T, file string) objects {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var o objects
	documents := bytes.Split(text, []byte("\n---\n"))
	for _, document := range documents {
		if err := o.decode(document); err != nil {
			t.Fatalf("%s: %v in\n%s", file, err, document)
		}
	}
	if len(documents) != 4 {
		t.Errorf("%s has %d documents, want one of each kind", file, len(documents))
	}
	return o
}

func TestManifests(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]string{
		"circulation": "HTTP_ADDR STORAGE_URL STAFF_PASSWORD_FILE", "circulation-storage": "HTTP_ADDR DATABASE_URL_FILE",
		"resource-locks": "HTTP_ADDR DATABASE_URL_FILE STAFF_PASSWORD_FILE",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := readObjects(t, filepath.Join("..", "..", "deploy", "kubernetes", name+".yaml"))
			checkNames(t, name, o)
			pod := o.deployment.Spec.Template.Spec
			if len(pod.Containers) != 1 {
				t.Fatalf("the pod has %d containers", len(pod.Containers))
			}
			c := pod.Containers[0]
			checkPod(t, pod, c)
			checkProbes(t, c)
			checkPorts(t, c, o)
			checkSettings(t, c, strings.Fields(settings))
		})
	}
}

// checkNames checks that all objects select the pods.
func checkNames(t *testing.T, name string, o objects) {
	t.Helper()
	want := map[string]string{"app.kubernetes.io/name": name}
	for what, labels := range map[string]map[string]string{
		"the deployment": o.deployment.Spec.Selector.MatchLabels, "the pods": o.deployment.Spec.Template.Labels,
		"the service": o.service.Spec.Selector, "the budget": o.budget.Spec.Selector.MatchLabels,
		"the policy": o.policy.Spec.PodSelector.MatchLabels,
	} {
		if !reflect.DeepEqual(labels, want) {
			t.Errorf("%s: %v, want %v", what, labels, want)
		}
	}
	if least := o.budget.Spec.MinAvailable.IntValue(); least < 1 || int(*o.deployment.Spec.Replicas) <= least {
		t.Errorf("%d of %d pods must stay, so none can be moved", least, *o.deployment.Spec.Replicas)
	}
	if len(o.policy.Spec.PolicyTypes) != 2 || len(o.policy.Spec.Ingress) == 0 || len(o.policy.Spec.Egress) == 0 {
		t.Errorf("the policy is %+v, want rules for both ways", o.policy.Spec)
	}
}

// checkPod checks that the container has no rights that it does not need.
func checkPod(t *testing.T, pod corev1.PodSpec, c corev1.Container) {
	t.Helper()
	all := pod.SecurityContext.RunAsNonRoot != nil && *pod.SecurityContext.RunAsNonRoot &&
		c.SecurityContext.ReadOnlyRootFilesystem != nil && *c.SecurityContext.ReadOnlyRootFilesystem &&
		c.SecurityContext.AllowPrivilegeEscalation != nil && !*c.SecurityContext.AllowPrivilegeEscalation &&
		reflect.DeepEqual(c.SecurityContext.Capabilities.Drop, []corev1.Capability{"ALL"})
	if !all {
		t.Errorf("the container may do more than it needs: %+v, %+v", pod.SecurityContext, c.SecurityContext)
	}
	if *pod.TerminationGracePeriodSeconds < 5+45+5 { // DRAIN_DELAY, SHUTDOWN_TIMEOUT and some
		t.Errorf("a stop has %d s", *pod.TerminationGracePeriodSeconds)
	}
}

func checkProbes(t *testing.T, c corev1.Container) {
	t.Helper()
	for what, probe := range map[string]*corev1.Probe{
		"/admin/health start": c.StartupProbe, "/admin/health live": c.LivenessProbe, "/admin/health/ready": c.ReadinessProbe,
	} {
		path, _, _ := strings.Cut(what, " ")
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != path || probe.HTTPGet.Port.String() != "http" {
			t.Errorf("the probe %s is %+v", what, probe)
		}
	}
}

// checkPorts checks that the service and the policy name ports of the container.
func checkPorts(t *testing.T, c corev1.Container, o objects) {
	t.Helper()
	ports := map[string]int32{}
	for _, p := range c.Ports {
		ports[p.Name] = p.ContainerPort
	}
	if len(ports) != len(o.service.Spec.Ports) || ports["http"] == 0 {
		t.Errorf("the container has the ports %v, and the service %v", ports, o.service.Spec.Ports)
	}
	for _, p := range o.service.Spec.Ports {
		if ports[p.TargetPort.String()] != p.Port {
			t.Errorf("the service leads from port %d to %s", p.Port, p.TargetPort.String())
		}
	}
	open := 0
	for _, p := range o.policy.Spec.Ingress[0].Ports {
		for _, port := range ports {
			if port == int32(p.Port.IntValue()) {
				open++
			}
		}
	}
	if open != len(ports) {
		t.Errorf("the policy opens %d of the ports %v", open, ports)
	}
}

// checkSettings checks that the settings are there, and that secrets are in mounted files alone.
func checkSettings(t *testing.T, c corev1.Container, want []string) {
	t.Helper()
	values := map[string]string{}
	for _, e := range c.Env {
		values[e.Name] = e.Value
		secret := strings.HasSuffix(e.Name, "_PASSWORD") || e.Name == "DATABASE_URL" || e.ValueFrom != nil
		if secret || strings.HasSuffix(e.Name, "_FILE") && !strings.HasPrefix(e.Value, c.VolumeMounts[0].MountPath+"/") {
			t.Errorf("%s is %q, want a secret in a mounted file", e.Name, e.Value)
		}
	}
	for _, name := range want {
		if values[name] == "" {
			t.Errorf("%s is not set", name)
		}
	}
}

func TestDecode_RefusesMisspeltFields(t *testing.T) {
	t.Parallel()
	for kind, tt := range map[string]struct{ rest, want string }{
		"v1\nkind: Service": {
			rest: "spec:\n  Selector: {}\n", want: `unknown field "spec.Selector"`,
		},
		"policy/v1\nkind: PodDisruptionBudget": {
			rest: "spec:\n  minAvailabel: 1\n", want: `unknown field "spec.minAvailabel"`,
		},
		"networking.k8s.io/v1\nkind: NetworkPolicy": {
			rest: "spec:\n  ingress:\n  - form: []\n", want: `unknown field "spec.ingress[0].form"`,
		},
		"apps/v1\nkind: Deployment": {
			rest: "spec:\n  replicas: 1\n  replicas: 2\n", want: "already set",
		},
		"apps/v1\nkind: Deploiment": {want: "there is no apps/v1 Deploiment"},
	} {
		text := "apiVersion: " + kind + "\n" + tt.rest
		if err := new(objects).decode([]byte(text)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s\ngot %v, want %s", text, err, tt.want)
		}
	}
}
