import {
  type NetworkPolicy,
  type NetworkRule,
  parseNetworkTarget,
  parsePortRange,
  parseTargetText,
  ruleText,
} from "@sandpiper/protocol";
import { CidrSet } from "./cidr-set.ts";

/** Targets with ports, by the name of their bundle. */
export type Bundles = Readonly<Record<string, readonly string[]>>;

export interface Verdict {
  readonly action: NetworkPolicy["default"];
  /** The rule that decided, or `default`. */
  readonly rule: string;
  /** How many rules come before the one that decided. */
  readonly position: number;
}

type Matcher = (host: Host) => boolean;
type Host = { readonly name: string } | { readonly address: string };
type PortSet = (port: number) => boolean;

interface CompiledRule {
  readonly action: "allow" | "deny";
  readonly text: string;
  readonly matches: (host: Host, port: number) => boolean;
}

/** A policy whose rules are ready to be compared with hosts. */
export class CompiledPolicy {
  readonly #rules: readonly CompiledRule[];
  readonly #default: NetworkPolicy["default"];

  constructor({ rules, default: otherwise }: Pick<NetworkPolicy, "rules" | "default">, bundles: Bundles) {
    this.#rules = rules.map((rule) => compiled(rule, bundles));
    this.#default = otherwise;
  }

  /** `name` is as `parseHostName` returns it. Rules about addresses do not decide on names. */
  decideName(name: string, port: number): Verdict {
    return this.#decide({ name }, port);
  }

  decideAddress(address: string, port: number): Verdict {
    return this.#decide({ address }, port);
  }

  /** Whether the name is allowed, or may be, on any port: only then does the node resolve it. */
  decideQuery(name: string): Verdict {
    const index = this.#rules.findIndex(
      ({ action, matches }) =>
        (action === "allow" && matches({ name }, ANY_PORT)) || (action === "deny" && matches({ name }, EVERY_PORT)),
    );
    return this.#verdict(index);
  }

  /** Whether rules before the one that allowed a name deny this address of it. */
  admits(address: string, port: number, { position }: Verdict): boolean {
    const first = this.#rules.slice(0, position).find(({ matches }) => matches({ address }, port));
    return first === undefined || first.action === "allow";
  }

  #decide(host: Host, port: number): Verdict {
    return this.#verdict(this.#rules.findIndex(({ matches }) => matches(host, port)));
  }

  #verdict(index: number): Verdict {
    const rule = this.#rules[index];
    if (rule === undefined) return { action: this.#default, rule: "default", position: this.#rules.length };
    return { action: rule.action, rule: rule.text, position: index };
  }
}

/** Stand-ins for ports in questions about a name alone. */
const ANY_PORT = -1;
const EVERY_PORT = -2;

function compiled(rule: NetworkRule, bundles: Bundles): CompiledRule {
  const [action, target] = "allow" in rule ? (["allow", rule.allow] as const) : (["deny", rule.deny] as const);
  const isPort = portSet(rule.ports);
  const matchers = matchersOf(target, bundles);
  return {
    action,
    text: ruleText(rule),
    matches: (host, port) => isPort(port) && matchers.some(({ isHost, isPort: has }) => has(port) && isHost(host)),
  };
}

function matchersOf(target: string, bundles: Bundles): readonly { isHost: Matcher; isPort: PortSet }[] {
  if (!target.startsWith("@")) return [{ isHost: matcher(target), isPort: () => true }];
  return (bundles[target.slice(1)] ?? []).flatMap((text) => {
    const entry = parseTargetText(text);
    return entry === undefined ? [] : [{ isHost: matcher(entry.target), isPort: portSet(entry.ports) }];
  });
}

function matcher(text: string): Matcher {
  const target = parseNetworkTarget(text);
  switch (target?.kind) {
    case "any":
      return () => true;
    case "name":
      return (host) => "name" in host && host.name === target.name;
    case "subdomains":
      return (host) => "name" in host && host.name.endsWith(`.${target.name}`);
    case "cidr": {
      const network = new CidrSet([text]);
      return (host) => "address" in host && network.has(host.address);
    }
    default:
      return () => false;
  }
}

function portSet(ports: NetworkRule["ports"]): PortSet {
  if (ports === undefined) return () => true;
  const ranges = ports.map((port) => (typeof port === "number" ? [port, port] : parsePortRange(port)));
  return (port) => {
    if (port === ANY_PORT) return true;
    if (port === EVERY_PORT) return false;
    return ranges.some((range) => range !== undefined && (range[0] ?? 0) <= port && port <= (range[1] ?? 0));
  };
}
