import {
  type NetworkPolicy,
  type NetworkRule,
  type NetworkTarget,
  parseNetworkTarget,
  parsePortRange,
  parseTargetText,
  targetText,
} from "@sandpiper/protocol";
import { CidrSet } from "./cidr-set.ts";
import type { Bundles } from "./compiled-policy.ts";

type Rules = Pick<NetworkPolicy, "rules" | "default">;

/** A target with its ports: what one rule, or one entry of a bundle, is about. */
interface Scope {
  readonly action: "allow" | "deny";
  readonly target: NetworkTarget;
  readonly ports: readonly (readonly [first: number, last: number])[];
}

const EVERY_PORT = [[1, 65_535]] as const;
/** What a default is about. */
const EVERYTHING = { target: { kind: "any" }, ports: EVERY_PORT } as const satisfies Omit<Scope, "action">;

/**
 * Whether a policy allows nothing that the other does not. It compares rules, not all hosts there are, and refuses in cases of
 * doubt: a denial in `limit` counts as kept only if `policy` denies the same, or more, before it allows.
 */
export function isNetworkWithin(policy: Rules, limit: Rules, bundles: Bundles): boolean {
  const scopes = policy.rules.map((rule) => scopesOf(rule, bundles));
  const limits = limit.rules.flatMap((rule) => scopesOf(rule, bundles));
  const isCovered = (scope: Omit<Scope, "action">, denied: readonly Scope[], wanted: "allow" | "ask") => {
    for (const own of limits) {
      if (own.action === "allow" && covers(own, scope)) return true;
      if (own.action === "deny" && meets(own, scope) && !denied.some((each) => covers(each, own))) return false;
    }
    return limit.default === "allow" || (wanted === "ask" && limit.default === "ask");
  };
  const deniedBefore = (position: number) =>
    scopes
      .slice(0, position)
      .flat()
      .filter(({ action }) => action === "deny");
  const areRulesCovered = scopes.every((group, position) =>
    group.every((scope) => scope.action === "deny" || isCovered(scope, deniedBefore(position), "allow")),
  );
  if (!areRulesCovered || policy.default === "deny") return areRulesCovered;
  return isCovered(EVERYTHING, deniedBefore(scopes.length), policy.default);
}

function scopesOf(rule: NetworkRule, bundles: Bundles): readonly Scope[] {
  const [action, text] = "allow" in rule ? (["allow", rule.allow] as const) : (["deny", rule.deny] as const);
  const target = parseNetworkTarget(text);
  if (target === undefined) return [];
  const ports = rangesOf(rule.ports);
  if (target.kind !== "bundle") return [{ action, target, ports }];
  return (bundles[target.bundle] ?? []).flatMap((entry) => {
    const { target: host = "", ports: own } = parseTargetText(entry) ?? {};
    const inner = parseNetworkTarget(host);
    const both = common(rangesOf(own), ports);
    return inner === undefined || both.length === 0 ? [] : [{ action, target: inner, ports: both }];
  });
}

function rangesOf(ports: NetworkRule["ports"]): Scope["ports"] {
  if (ports === undefined) return EVERY_PORT;
  return ports.flatMap((port) => {
    const range = typeof port === "number" ? ([port, port] as const) : parsePortRange(port);
    return range === undefined ? [] : [range];
  });
}

function common(some: Scope["ports"], others: Scope["ports"]): Scope["ports"] {
  const overlaps = some.flatMap(([first, last]) =>
    others.map(([from, to]) => [Math.max(first, from), Math.min(last, to)] as const),
  );
  return overlaps.filter(([first, last]) => first <= last);
}

type Part = Omit<Scope, "action">;

/** Whether everything in `inner` is in `outer`. */
function covers(outer: Part, inner: Part): boolean {
  return (
    inner.ports.every(([first, last]) => outer.ports.some(([from, to]) => from <= first && last <= to)) &&
    coversTarget(outer.target, inner.target)
  );
}

function coversTarget(outer: NetworkTarget, inner: NetworkTarget): boolean {
  if (outer.kind === "any") return true;
  if (outer.kind === "name") return inner.kind === "name" && inner.name === outer.name;
  if (outer.kind === "subdomains") {
    if (inner.kind === "subdomains" && inner.name === outer.name) return true;
    return (inner.kind === "name" || inner.kind === "subdomains") && inner.name.endsWith(`.${outer.name}`);
  }
  if (outer.kind !== "cidr" || inner.kind !== "cidr" || inner.family !== outer.family) return false;
  return outer.prefix <= inner.prefix && new CidrSet([targetText(outer)]).has(inner.address);
}

/** Whether something may be in both. A name may have any address. */
function meets(one: Part, other: Part): boolean {
  const havePort = one.ports.some(([first, last]) => other.ports.some(([from, to]) => first <= to && from <= last));
  return (
    havePort &&
    (isMixed(one, other) || coversTarget(one.target, other.target) || coversTarget(other.target, one.target))
  );
}

function isMixed({ target: one }: Part, { target: other }: Part): boolean {
  return (one.kind === "cidr") !== (other.kind === "cidr");
}
