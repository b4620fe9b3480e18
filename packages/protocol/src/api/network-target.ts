import { z } from "zod";

/** What a rule is about. Names are lower-case ASCII without a trailing dot. */
export type NetworkTarget =
  | { readonly kind: "any" }
  | { readonly kind: "bundle"; readonly bundle: string }
  | { readonly kind: "name"; readonly name: string }
  /** The sub-domains of a name, not the name itself. */
  | { readonly kind: "subdomains"; readonly name: string }
  | { readonly kind: "cidr"; readonly address: string; readonly prefix: number; readonly family: "ipv4" | "ipv6" };

/** As long as DNS allows, in ASCII and without the trailing dot. */
const MAX_NAME_CHARS = 253;
/** Underscores are not in host names, but in names that DNS resolves. */
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
const BUNDLE = /^[a-z0-9][a-z0-9-]{0,62}$/;

const ipv4 = z.ipv4();
const ipv6 = z.ipv6();

/** Undefined if the text is neither a host name, `*`, `*.` before a name, an address, a network, nor `@` before a bundle. */
export function parseNetworkTarget(text: string): NetworkTarget | undefined {
  if (text === "*") return { kind: "any" };
  if (text.startsWith("@")) return BUNDLE.test(text.slice(1)) ? { kind: "bundle", bundle: text.slice(1) } : undefined;
  const network = parseCidr(text);
  if (network !== undefined) return { kind: "cidr", ...network };
  const isWildcard = text.startsWith("*.");
  const name = parseHostName(isWildcard ? text.slice(2) : text);
  return name === undefined ? undefined : { kind: isWildcard ? "subdomains" : "name", name };
}

export function targetText(target: NetworkTarget): string {
  switch (target.kind) {
    case "any":
      return "*";
    case "bundle":
      return `@${target.bundle}`;
    case "name":
      return target.name;
    case "subdomains":
      return `*.${target.name}`;
    case "cidr":
      return target.prefix === bitsOf(target.family) ? target.address : `${target.address}/${target.prefix}`;
  }
}

/**
 * The name in lower-case ASCII without a trailing dot: names with other letters become Punycode. Undefined if it is not a
 * host name. A name that some program takes for an address, such as `0x7f.1`, is not one.
 */
export function parseHostName(text: string): string | undefined {
  const name = asciiName(text.endsWith(".") ? text.slice(0, -1) : text);
  if (name === undefined || name.length > MAX_NAME_CHARS) return undefined;
  const labels = name.split(".");
  const last = labels.at(-1) ?? "";
  const looksLikeAddress = /^(?:\d+|0x[0-9a-f]*)$/.test(last);
  return !looksLikeAddress && labels.every((label) => LABEL.test(label)) ? name : undefined;
}

/** An address without a prefix is a network of one address. */
export function parseCidr(text: string) {
  const [address = "", bits, ...rest] = text.split("/");
  if (rest.length > 0) return undefined;
  const family = familyOf(address);
  if (family === undefined) return undefined;
  if (bits !== undefined && !/^(?:0|[1-9]\d{0,2})$/.test(bits)) return undefined;
  const prefix = bits === undefined ? bitsOf(family) : Number(bits);
  return prefix <= bitsOf(family) ? { address, prefix, family } : undefined;
}

/** Only the usual spelling of an IPv4 address counts: four decimal numbers without leading zeros. */
function familyOf(address: string): "ipv4" | "ipv6" | undefined {
  if (ipv4.safeParse(address).success) return "ipv4";
  return ipv6.safeParse(address).success ? "ipv6" : undefined;
}

function bitsOf(family: "ipv4" | "ipv6"): number {
  return family === "ipv4" ? 32 : 128;
}

function asciiName(text: string): string | undefined {
  // The URL parser would accept a user, a port or a path in a name.
  if (text.length > 1024 || /[\s/?#@:\\[\]%]/.test(text)) return undefined;
  const isAscii = [...text].every((char) => char <= "\x7f");
  if (isAscii) return text.toLowerCase();
  const url = `http://${text}`;
  return URL.canParse(url) ? new URL(url).hostname : undefined;
}
