import type { NetworkPolicy } from "@sandpiper/sdk";

/** A policy for people: its rules in order, then what happens to everything else, then limits that are set. */
export function networkLines({ rules, default: otherwise, limits }: NetworkPolicy): readonly string[] {
  const numbers = Object.entries(limits).filter(([, value]) => value !== null);
  return [
    ...rules.map((rule) => {
      const [action, target] = "allow" in rule ? ["allow", rule.allow] : ["deny ", rule.deny];
      return `${action}  ${target}${rule.ports === undefined ? "" : `  ports ${rule.ports.join(", ")}`}`;
    }),
    `${otherwise.padEnd(5)}  everything else`,
    ...numbers.map(([name, value]) => `limit  ${name} ${value}`),
  ];
}
