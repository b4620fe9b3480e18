import type { NamedBenchmark } from "./benchmark.ts";
import { formatTarget, type Group, groupResults } from "./layout.ts";
import type { Machine } from "./machine.ts";
import type { Report } from "./report.ts";
import type { SubjectDefinition } from "./subject.ts";

export interface Page {
  readonly machine: Machine;
  readonly report: Report;
  readonly benchmarks: readonly NamedBenchmark[];
  readonly subjects: readonly SubjectDefinition[];
}

/** The report as docs/benchmarks.md, so that no figure is ever typed by hand. */
export function renderMarkdown({ machine, report, benchmarks, subjects }: Page): string {
  const groups = groupResults(report.results);
  // Whatever they are called, none may be left out.
  const strays = groups.filter((group) => !benchmarks.some(({ name }) => isOf(name, group)));
  return `${[
    "# Benchmarks",
    "Written by `npm run bench -- --markdown docs/benchmarks.md`; run it to get the figures of your own machine. A benchmark is a file in `bench/benchmarks/`, a subject one in `bench/subjects/`; adding a file adds one.",
    "All subjects of a benchmark take turns in one run (A B C A B C …), so that whatever else the machine does hits them alike; the first round does not count.",
    "## Machine",
    machineList(machine),
    "## Targets",
    table(["target", "measured", ""], report.targets.map(formatTarget)),
    "## Figures",
    ...benchmarks.flatMap((benchmark) => benchmarkSection(benchmark, groups)),
    ...(strays.length > 0 ? ["### Other figures", ...groupTables(strays)] : []),
    ...(report.problems.length > 0 ? ["## Problems", list(report.problems)] : []),
    "## Subjects",
    list(subjects.map((one) => `\`${one.name}\`: ${one.title}`)),
  ].join("\n\n")}\n`;
}

function benchmarkSection({ name, title, method }: NamedBenchmark, groups: readonly Group[]): string[] {
  const own = groups.filter((group) => isOf(name, group));
  if (own.length === 0) return [];
  return [`### ${name}`, `${title}.`, method, ...groupTables(own, name)];
}

/** Each with its name, unless it is that of what it stands below. */
function groupTables(groups: readonly Group[], above?: string): string[] {
  return groups.flatMap((group) => {
    const rows = group.rows.map((row) => [row.subject, row.p50, row.p95, row.n, row.ratio]);
    const caption = group.name === above ? [] : [`**${group.name}**`];
    return [...caption, table(["subject", "p50", "p95", "n", "× ours (p50)"], rows)];
  });
}

/** A benchmark names its groups after itself: "scale", "scale create", "scale, …". */
function isOf(name: string, group: Group): boolean {
  return group.name.startsWith(name) && !/^[\w-]/.test(group.name.slice(name.length));
}

function machineList(machine: Machine): string {
  const versions = Object.entries(machine.versions).map(([program, version]) => `${program} ${version}`);
  return list([
    `${machine.cores} × ${machine.cpu}${machine.isVirtual ? " (virtual machine)" : ""}, ${machine.memoryGib} GiB memory`,
    `${machine.distribution}, ${machine.kernel}, cgroup ${machine.cgroups}`,
    [`Node ${machine.node}`, ...versions].join(", "),
    `measured ${machine.measuredAt}, load ${machine.loadAtStart} at the start`,
  ]);
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

function list(items: readonly string[]): string {
  return items.map((item) => `- ${item}`).join("\n");
}
