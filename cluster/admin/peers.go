// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"sync"

	"fairlead.io/fairlead/cluster/pki"
)

// maxPeers bounds the clients kept; a group has far fewer members.
const maxPeers = 64

// Peers keeps a Client for each other member, by the address of its API.
type Peers struct {
	open func(address string) *Client

	mu      sync.Mutex
	clients map[string]*Client
}

// NewPeers makes clients on demand; dial is optional, the system's.
func NewPeers(endpoint *pki.Endpoint, dial pki.DialFunc) *Peers {
	return NewPeersOver(func(address string) *Client {
		return NewClient(ClientOptions{Endpoint: endpoint, Servers: []string{address}, Dial: dial})
	})
}

// NewPeersOver is NewPeers for clients that are made otherwise: see NewClientOver.
func NewPeersOver(open func(address string) *Client) *Peers {
	return &Peers{open: open, clients: map[string]*Client{}}
}

// Client gives the one for the member whose API is at address.
func (p *Peers) Client(address string) *Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	client, ok := p.clients[address]
	if !ok {
		if len(p.clients) >= maxPeers { // members moved many times
			p.closeLocked()
		}
		client = p.open(address)
		p.clients[address] = client
	}
	return client
}

// Close gives up idle connections.
func (p *Peers) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeLocked()
}

func (p *Peers) closeLocked() {
	for _, client := range p.clients {
		client.Close()
	}
	clear(p.clients)
}
