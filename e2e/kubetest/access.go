// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"context"
	"fmt"

	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Issuer issues the cluster's ServiceAccount tokens, and is the one audience that the API server itself accepts.
const Issuer = "https://kubernetes.default.svc"

// Kubeconfig is the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return c.file("kubeconfig") }

// Config lets an administrator call the API, without a client-side limit of its rate.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.admin) }

// ConfigFor lets a user call the API who is a member of groups, and may do what RBAC grants them.
func (c *Cluster) ConfigFor(user string, groups ...string) (*rest.Config, error) {
	p, err := c.ca.client(user, groups...)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for %s: %w", user, err)
	}
	return c.config(rest.TLSClientConfig{CertData: p.cert, KeyData: p.key}, ""), nil
}

// ConfigForAccount lets a ServiceAccount call the API, with a token of an hour.
func (c *Cluster) ConfigForAccount(ctx context.Context, namespace, name string) (*rest.Config, error) {
	token, err := c.Token(ctx, namespace, name, "")
	if err != nil {
		return nil, err
	}
	return c.config(rest.TLSClientConfig{}, token), nil
}

// KubeconfigFor writes a kubeconfig of that user and gives its path.
func (c *Cluster) KubeconfigFor(user string, groups ...string) (string, error) {
	config, err := c.ConfigFor(user, groups...)
	if err != nil {
		return "", err
	}
	return c.newKubeconfig(config)
}

// KubeconfigForAccount writes a kubeconfig of a ServiceAccount and gives its path.
func (c *Cluster) KubeconfigForAccount(ctx context.Context, namespace, name string) (string, error) {
	config, err := c.ConfigForAccount(ctx, namespace, name)
	if err != nil {
		return "", err
	}
	return c.newKubeconfig(config)
}

// Token asks the API server for a token of a ServiceAccount. An empty audience is the API server itself.
func (c *Cluster) Token(ctx context.Context, namespace, name, audience string) (string, error) {
	request := &authv1.TokenRequest{}
	if audience != "" {
		request.Spec.Audiences = []string{audience}
	}
	answer, err := c.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("get a token of ServiceAccount %s/%s: %w", namespace, name, err)
	}
	return answer.Status.Token, nil
}

// PodToken asks for a token as the kubelet of a Pod's node does: it names the Pod and the Node.
func (c *Cluster) PodToken(ctx context.Context, pod *Pod, account, audience string) (string, error) {
	request := &authv1.TokenRequest{Spec: authv1.TokenRequestSpec{
		Audiences:      []string{audience},
		BoundObjectRef: &authv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
	}}
	answer, err := c.client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("get a token of ServiceAccount %s/%s for Pod %s: %w", pod.Namespace, account, pod.Name, err)
	}
	return answer.Status.Token, nil
}

func (c *Cluster) config(tls rest.TLSClientConfig, token string) *rest.Config {
	tls.CAData = c.ca.pem
	return &rest.Config{Host: "https://" + c.Endpoint().String(), TLSClientConfig: tls, BearerToken: token, QPS: -1}
}

func (c *Cluster) newKubeconfig(config *rest.Config) (string, error) {
	c.mu.Lock()
	c.kubeconfigs++
	path := c.file(fmt.Sprintf("kubeconfig-%d", c.kubeconfigs))
	c.mu.Unlock()
	return path, c.writeKubeconfig(path, config)
}

func (c *Cluster) writeKubeconfig(path string, config *rest.Config) error {
	const name = "kubetest"
	file := api.NewConfig()
	file.Clusters[name] = &api.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos[name] = &api.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken}
	file.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}
	file.CurrentContext = name
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func namespaceNamed(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func accountNamed(name string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
