/** What the first bytes of a connection say about HTTP/1. */
export type HttpReading =
  /** The first line is not complete: no server has acted on it. */
  | { readonly kind: "line" }
  /** A request whose headers are not complete. */
  | { readonly kind: "head" }
  /** Not HTTP/1. */
  | { readonly kind: "other" }
  /** Servers could disagree about its host. */
  | { readonly kind: "malformed" }
  /** The hosts of the request line and of the Host headers, without ports. */
  | { readonly kind: "request"; readonly hosts: readonly string[] };

/** More than servers accept. */
const MAX_HEAD_BYTES = 64 * 1024;
/** Text, perhaps after empty lines, which servers skip. */
const TEXT = /^[\r\n]*[\t\x20-\x7e\x80-\xff]*\r?$/;
/** What some server takes for a request of HTTP/1. HTTP/2 without TLS begins in another way; its host is not checked. */
const LENIENT = /^[\r\n]*\S+[ \t]+.*[ \t]HTTP\/[01]\b/i;
const STRICT = /^[\r\n]*[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32} ([^ \t\r\n]+) HTTP\/1\.\d$/;

const malformed: HttpReading = { kind: "malformed" };

/** Reads the host of a request. Only the first request of a connection is read. */
export function readHttpHost(bytes: Buffer): HttpReading {
  const begin = bytes.findIndex((byte) => byte !== 0x0d && byte !== 0x0a);
  const lineEnd = begin === -1 ? -1 : bytes.indexOf(0x0a, begin);
  if (lineEnd === -1) {
    const isText = bytes.length < MAX_HEAD_BYTES && TEXT.test(bytes.toString("latin1"));
    return { kind: isText ? "line" : "other" };
  }
  const line = withoutReturn(bytes.toString("latin1", 0, lineEnd));
  if (!LENIENT.test(line)) return { kind: "other" };
  const target = STRICT.exec(line)?.[1];
  if (target === undefined) return malformed;
  const end = headEnd(bytes, lineEnd);
  if (end === undefined) return bytes.length >= MAX_HEAD_BYTES ? malformed : { kind: "head" };
  const lines = bytes
    .toString("latin1", lineEnd + 1, end)
    .split("\n")
    .map(withoutReturn);
  return readHosts(target, end <= lineEnd ? [] : lines);
}

function readHosts(target: string, lines: readonly string[]): HttpReading {
  const hosts: string[] = [];
  const authority = /^[a-z][a-z0-9+.-]*:\/\/(?:[^/?#]*@)?([^/?#]*)/i.exec(target)?.[1];
  if (authority !== undefined) hosts.push(withoutPort(authority));
  for (const line of lines) {
    // Continued lines, single returns, and spaces before the colon are read differently by different servers.
    const [, name, value = ""] = /^([^\s:]+):([^\r]*)$/.exec(line) ?? [];
    if (name === undefined) return malformed;
    if (name.toLowerCase() === "host") hosts.push(withoutPort(value.trim()));
  }
  return { kind: "request", hosts };
}

/** The end of the last header's line. */
function headEnd(bytes: Buffer, from: number): number | undefined {
  for (let at = from; at !== -1; at = bytes.indexOf(0x0a, at + 1)) {
    if (bytes[at + 1] === 0x0a) return at;
    if (bytes[at + 1] === 0x0d && bytes[at + 2] === 0x0a) return at;
  }
  return undefined;
}

function withoutReturn(line: string): string {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}

function withoutPort(host: string): string {
  return host.replace(/:\d*$/, "").replace(/^\[(.*)\]$/, "$1");
}
