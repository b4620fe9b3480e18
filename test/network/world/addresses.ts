/**
 * Addresses of the tests' internet. Documentation ranges stand for public addresses: the operator's setting allows the first two.
 * Every server listens on all of them, so an attempt that gets through to a forbidden address is answered, and fails its test.
 */
export const addresses = {
  /** Sites, mirrors and most servers. */
  site: "192.0.2.10",
  dns: "192.0.2.53",
  /** A second public host. */
  other: "203.0.113.10",
  siteV6: "2001:db8::10",
  /** A documentation address that the operator does not allow. */
  unlisted: "198.51.100.10",
  private10: "10.99.0.10",
  private172: "172.16.99.10",
  private192: "192.168.99.10",
  sharedNat: "100.64.99.10",
  linkLocal: "169.254.99.10",
  metadata: "169.254.169.254",
  uniqueLocalV6: "fd00:99::10",
  metadataV6: "fd00:ec2::254",
} as const;

/** What `network.allowedCidrs` of the tests' nodes has. */
export const ALLOWED_CIDRS = ["192.0.2.0/24", "203.0.113.0/24", "2001:db8::/64"] as const;

/** Addresses that no policy may reach. */
export const forbiddenAddresses: readonly string[] = [
  addresses.unlisted,
  addresses.private10,
  addresses.private172,
  addresses.private192,
  addresses.sharedNat,
  addresses.linkLocal,
  addresses.metadata,
  addresses.uniqueLocalV6,
  addresses.metadataV6,
];

export const ports = {
  http: 80,
  https: 443,
  ssh: 22,
  postgres: 5432,
  /** Returns what it gets, and ends when the client ends its side. */
  echo: 7,
  /** Speaks first: sends a line, then echoes lines. */
  greeting: 2525,
  /** Reads to the end of the client's side, then answers with the number of bytes. */
  counter: 9,
  /** Sends as many bytes as the client's first line says, then ends. */
  source: 19,
} as const;
