import {
  type FlowRecord,
  MAX_NETWORK_RULES,
  type NetworkRule,
  parseNetworkTarget,
  parsePortRange,
  parseTargetText,
} from "@sandpiper/protocol";
import { isSharedSuffix } from "./shared-suffixes.ts";

/** Fewer siblings are listed by name. */
const MIN_SIBLINGS = 3;
/** A bundle that would stand for one name allows more than that name for nothing. */
const MIN_BUNDLED = 2;
/** As many as a rule may have. */
const MAX_PORT_RANGES = 32;
/** The port of a host that was only looked up. */
const USUAL_PORT = 443;

const ADDRESS_TYPES = ["A", "AAAA"];

/** Targets with their ports by the name of the bundle, as the operator configured them. */
export type NetworkBundles = Readonly<Record<string, readonly string[]>>;

/** Collects which hosts a sandbox needs, record by record. */
export class RuleSuggestion {
  readonly #bundles: NetworkBundles;
  /** The ports of each name or address. */
  readonly #hosts = new Map<string, Set<number>>();
  readonly #lookedUp = new Set<string>();

  constructor(bundles: NetworkBundles) {
    this.#bundles = bundles;
  }

  add(record: FlowRecord): void {
    const host = record.name ?? record.address;
    if (host === null || record.kind === "datagram" || !canBeAllowed(record)) return;
    // Programs try other records, such as SRV of _http._tcp.deb.debian.org, and do without them.
    if (record.kind === "query" && !ADDRESS_TYPES.includes(record.queryType ?? "A")) return;
    if (record.port === null) this.#lookedUp.add(host);
    else this.#hosts.set(host, (this.#hosts.get(host) ?? new Set()).add(record.port));
  }

  /** The fewest rules that allow what was recorded: bundles first, then names, then addresses. */
  rules(): readonly NetworkRule[] {
    const hosts = new Map(this.#hosts);
    for (const name of this.#lookedUp) if (!hosts.has(name)) hosts.set(name, new Set([USUAL_PORT]));
    const bundles = this.#takeBundles(hosts);
    const addresses = [...hosts].filter(([host]) => parseNetworkTarget(host)?.kind === "cidr");
    for (const [address] of addresses) hosts.delete(address);
    const wildcards = takeWildcards(hosts);
    const names = [...hosts, ...wildcards].sort(byDomain);
    const rules = [...names, ...addresses.sort(byDomain)].map(([allow, ports]) => ({ allow, ports: portsOf(ports) }));
    return [...bundles.map((bundle) => ({ allow: `@${bundle}` })), ...rules].slice(0, MAX_NETWORK_RULES);
  }

  /** Removes the hosts that a bundle stands for, and returns the bundles. */
  #takeBundles(hosts: Map<string, Set<number>>): readonly string[] {
    const used: string[] = [];
    for (const bundle of Object.keys(this.#bundles).sort()) {
      const targets = this.#bundles[bundle] ?? [];
      const members = [...hosts].filter(([host]) => targets.some((target) => isAbout(target, host)));
      const fits = members.every(([host, ports]) =>
        [...ports].every((port) => targets.some((target) => isAbout(target, host, port))),
      );
      if (!fits || members.length < MIN_BUNDLED) continue;
      used.push(bundle);
      for (const [host] of members) hosts.delete(host);
    }
    return used;
  }
}

/** A denial that no rule changes is not a need, nor is one that a rule wants, nor a name that does not exist. */
function canBeAllowed({ kind, decision, suggestion, reason }: FlowRecord): boolean {
  if (decision === "allowed") return kind === "flow" || reason === null;
  return suggestion !== null && reason !== "rule";
}

function isAbout(text: string, host: string, port?: number): boolean {
  const { target = "", ports } = parseTargetText(text) ?? {};
  const parsed = parseNetworkTarget(target);
  const isHost =
    parsed?.kind === "name"
      ? parsed.name === host
      : parsed?.kind === "subdomains" && host.endsWith(`.${parsed.name}`) && host !== parsed.name;
  if (!isHost || port === undefined || ports === undefined) return isHost;
  return ports.some((each) => {
    const [first, last] = typeof each === "number" ? [each, each] : (parsePortRange(each) ?? [0, 0]);
    return port >= first && port <= last;
  });
}

/** Removes sibling sub-domains with the same ports, and returns wildcards in their place. */
function takeWildcards(hosts: Map<string, Set<number>>): readonly (readonly [string, Set<number>])[] {
  const parentOf = (name: string) => name.slice(name.indexOf(".") + 1);
  const candidates = [...hosts.keys()].filter((name) => name.includes(".") && !isSharedSuffix(parentOf(name)));
  const keyOf = (name: string) => `${parentOf(name)} ${portsOf(hosts.get(name) as Set<number>).join("+")}`;
  const wildcards: [string, Set<number>][] = [];
  for (const siblings of Map.groupBy(candidates, keyOf).values()) {
    const [first] = siblings;
    if (first === undefined || siblings.length < MIN_SIBLINGS) continue;
    wildcards.push([`*.${parentOf(first)}`, hosts.get(first) as Set<number>]);
    for (const name of siblings) hosts.delete(name);
  }
  return wildcards;
}

/** Three ports in a row or more are a range; what still does not fit a rule is one range. */
function portsOf(ports: ReadonlySet<number>): (number | string)[] {
  const sorted = [...ports].sort((a, b) => a - b);
  const runs: { first: number; last: number }[] = [];
  for (const port of sorted) {
    const run = runs.at(-1);
    if (run !== undefined && run.last + 1 === port) run.last = port;
    else runs.push({ first: port, last: port });
  }
  const ranges = runs.flatMap<number | string>(({ first, last }) => {
    if (last - first >= 2) return [`${first}-${last}`];
    return first === last ? [first] : [first, last];
  });
  return ranges.length <= MAX_PORT_RANGES ? ranges : [`${sorted[0]}-${sorted.at(-1)}`];
}

/** Hosts of one domain stand together. */
function byDomain([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  const reversed = (host: string) => host.split(".").reverse().join(".");
  return reversed(a) < reversed(b) ? -1 : 1;
}
