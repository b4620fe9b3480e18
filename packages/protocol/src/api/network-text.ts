import { type NetworkBody, type NetworkRule, networkBodySchema, networkNameSchema, parsePortRange } from "./network.ts";

export const NETWORK_SYNTAX = 'none, open, ask, or rules such as "allow=@pypi,api.example.com:443,deny=*.example.com"';

type Ports = NonNullable<NetworkRule["ports"]>;

/**
 * Reads a policy from one line: `none`, `open`, `ask`, or targets that `allow=` or `deny=` begins, separated by commas.
 * Undefined if the text is invalid.
 */
export function parseNetwork(text: string): NetworkBody | undefined {
  if (networkNameSchema.safeParse(text).success) return text as NetworkBody;
  const rules: unknown[] = [];
  let action: string | undefined;
  for (const word of text.split(",")) {
    const [, named, rest = word] = /^(allow|deny)=(.*)$/.exec(word) ?? [];
    action = named ?? action;
    const parsed = parseTargetText(rest.trim());
    if (action === undefined || parsed === undefined) return undefined;
    const { target, ports } = parsed;
    rules.push({ [action]: target, ...(ports === undefined ? {} : { ports }) });
  }
  return networkBodySchema.safeParse({ rules }).data;
}

/** Reads a target with its ports: `host`, `host:443`, `host:80+8000-8100`, `[2001:db8::/32]:443`. Checks only the ports. */
export function parseTargetText(text: string): { readonly target: string; readonly ports?: Ports } | undefined {
  const [, bracketed, after] = /^\[([^\]]*)\](?::(.*))?$/.exec(text) ?? [];
  if (bracketed !== undefined) return withPorts(bracketed, after);
  // More than one colon without brackets is an IPv6 address.
  const parts = text.split(":");
  return parts.length === 2 ? withPorts(parts[0] ?? "", parts[1]) : withPorts(text, undefined);
}

/** A rule as `parseNetwork` reads it, such as `allow=pypi.org:443`. */
export function ruleText(rule: NetworkRule): string {
  const [action, target] = "allow" in rule ? ["allow", rule.allow] : ["deny", rule.deny];
  if (rule.ports === undefined) return `${action}=${target}`;
  return `${action}=${target.includes(":") ? `[${target}]` : target}:${rule.ports.join("+")}`;
}

function withPorts(target: string, text: string | undefined) {
  if (target === "") return undefined;
  if (text === undefined) return { target };
  const ports: (number | string)[] = [];
  for (const word of text.split("+")) {
    const isPort = /^[1-9]\d{0,4}$/.test(word) && Number(word) <= 65_535;
    if (!isPort && parsePortRange(word) === undefined) return undefined;
    ports.push(isPort ? Number(word) : word);
  }
  return { target, ports };
}
