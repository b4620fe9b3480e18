import { addresses } from "../world/addresses.ts";
import { type Attempt, attempt, get, HOST_PORT, NODE_ADDRESS, NODE_PORT } from "./attempt.ts";

const mapped = (address: string, port: number): string => attempt(`net.get("::ffff:${address}", ${port})`);

/** Attempts that name an address themselves. */
export const addressAttempts: readonly Attempt[] = [
  { name: "the host's loopback", script: get(["127.0.0.1", HOST_PORT], ["localhost", HOST_PORT]) },
  { name: "the host's IPv6 loopback", script: get(["::1", HOST_PORT]) },
  { name: "another address of the host's loopback network", script: get(["127.8.9.10", HOST_PORT]) },
  { name: "the node's port at its address", script: get([NODE_ADDRESS, NODE_PORT]), escaped: /HTTP\/1\.1 \d/ },
  { name: "the node's port on loopback", script: get(["127.0.0.1", NODE_PORT]), escaped: /HTTP\/1\.1 \d/ },
  { name: "a service of the host at the host's address", script: get([NODE_ADDRESS, HOST_PORT]) },
  { name: "the host's neighbour on its private link", script: get(["10.77.0.10"]) },
  { name: "the private network 10.0.0.0/8", script: get([addresses.private10]) },
  { name: "the private network 172.16.0.0/12", script: get([addresses.private172]) },
  { name: "the private network 192.168.0.0/16", script: get([addresses.private192]) },
  { name: "the shared address space 100.64.0.0/10", script: get([addresses.sharedNat]) },
  { name: "a link-local address", script: get([addresses.linkLocal]) },
  { name: "the metadata address", script: get([addresses.metadata]) },
  { name: "the metadata address over TLS", script: attempt(`net.get_tls("${addresses.metadata}")`) },
  { name: "a documentation network that the operator did not allow", script: get([addresses.unlisted]) },
  { name: "an IPv6 unique local address", script: get([addresses.uniqueLocalV6]) },
  { name: "the IPv6 metadata address", script: get([addresses.metadataV6]) },
  { name: "an IPv6 link-local address", script: get(["fe80::10%lo"], ["fe80::10"]) },
  { name: "a private address as IPv4-mapped IPv6", script: mapped(addresses.private10, 80) },
  { name: "the metadata address as IPv4-mapped IPv6", script: mapped(addresses.metadata, 80) },
  { name: "the host's loopback as IPv4-mapped IPv6", script: mapped("127.0.0.1", HOST_PORT) },
  { name: "a private address as IPv4-compatible IPv6", script: get(["::10.99.0.10"]) },
  { name: "a private address through NAT64", script: get(["64:ff9b::a63:a"]) },
  { name: "a private address through 6to4", script: get(["2002:a63:a::1"]) },
  { name: "the metadata address as a decimal number", script: get(["2852039166"]) },
  { name: "the metadata address in octal", script: get(["0251.0376.0251.0376"]) },
  { name: "the metadata address in hexadecimal", script: get(["0xa9fea9fe"], ["0xa9.0xfe.0xa9.0xfe"]) },
  { name: "a private address in a short form", script: get(["10.6488074"]) },
  { name: "a private address with leading zeros", script: get(["012.0143.0.012"]) },
  { name: "0.0.0.0", script: get(["0.0.0.0", HOST_PORT], ["0", HOST_PORT]) },
  { name: "the unspecified IPv6 address", script: get(["::", HOST_PORT]) },
  { name: "the network 0.0.0.0/8", script: get(["0.0.0.10"]) },
  { name: "the broadcast address over TCP", script: get(["255.255.255.255"]) },
  { name: "a multicast address over TCP", script: get(["224.0.0.1"]) },
  { name: "the reserved network 240.0.0.0/4", script: get(["240.0.0.10"]) },
  {
    name: "the benchmark network, which stand-in addresses are from",
    script: get(["198.18.200.200"], ["198.19.255.1"]),
  },
  { name: "the addresses of the sandbox's own link", script: get(["10.0.2.1", HOST_PORT], ["10.0.2.3", HOST_PORT]) },
  {
    name: "a private address under the name of an allowed site",
    script: attempt(`net.get("${addresses.private10}", 80, "site.example")`),
  },
  {
    name: "a private address with TLS for an allowed site",
    script: attempt(`net.get_tls("${addresses.private10}", 443, "site.example", "site.example")`),
  },
];
