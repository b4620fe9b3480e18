import { styleText } from "node:util";
import { helpOption, type Option, usageOf } from "./syntax.ts";
import type { Verb } from "./verb.ts";

/** The order in which `sandpiper --help` lists the verbs. */
const groups: readonly (readonly [title: string, verbs: string])[] = [
  ["Run code", "run shell exec mcp"],
  ["Manage sandboxes", "create ls get update rm cp ps logs kill stats events pause resume stop start rebuild move"],
  ["Reach hosts and ports", "net ports url forward"],
  ["Save and restore sandboxes", "checkpoint checkpoints restore fork rollback"],
  ["Manage nodes", "up nodes node store backup releases keys secrets tenants audit pool caches volumes machines"],
  ["Other verbs", "doctor completion help version"],
];

const MIN_TEXT_WIDTH = 24;
const alternatives = new Intl.ListFormat("en-GB", { type: "disjunction" });

export function programHelp(verbs: readonly Verb[], width = terminalWidth()): string {
  const nameWidth = Math.max(...verbs.map(({ name }) => name.length));
  const sections = groups.map(([title, names]) => {
    const listed = names.split(" ").flatMap((name) => verbs.find((verb) => verb.name === name) ?? []);
    const rows = listed.map(({ name, summary }) => [name.padEnd(nameWidth), summary] as const);
    return section(title, table(rows, width));
  });
  return joined([
    `${styleText("bold", "Usage:")} sandpiper VERB [OPTIONS] [ARGS…]`,
    "Run untrusted code in sandboxes.",
    ...sections,
    section("Options", table([optionRow(helpOption), ["-V, --version", "print the version"]], width)),
    section("Examples", [
      "sandpiper run -- python3 -c 'print(6 * 7)'",
      "sandpiper shell --memory 1024",
      "sandpiper up",
      "sandpiper create --name build && sandpiper exec build -- uname -a",
    ]),
    section("Learn more", ['Run "sandpiper VERB --help" for more about a verb.', "Read docs/cli.md for a tour."]),
  ]);
}

export function verbHelp(verb: Verb, width = terminalWidth()): string {
  const { summary, details, actions, options, exitCodes, examples, learnMore } = verb;
  const usage = actions === undefined ? usageOf(verb) : `sandpiper ${verb.name} ACTION`;
  const hint = `Run "sandpiper ${verb.name} ACTION --help" for more about an action.`;
  const more = [...(actions === undefined ? [] : [hint]), ...(learnMore === undefined ? [] : [`Read ${learnMore}.`])];
  return joined([
    `${styleText("bold", "Usage:")} ${usage}`,
    `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`,
    ...(details?.split("\n\n").map((paragraph) => wrap(paragraph, width).join("\n")) ?? []),
    actions && section("Actions", table(actions.map(actionRow), width)),
    section("Options", table([...options, helpOption].map(optionRow), width)),
    exitCodes && section("Exit codes", table(exitCodes, width)),
    examples && section("Examples", examples),
    more.length > 0 && section("Learn more", more),
  ]);
}

function terminalWidth(): number {
  return Math.min(process.stdout.columns || 80, 120);
}

function joined(parts: readonly (string | false | undefined)[]): string {
  return `${parts.filter(Boolean).join("\n\n")}\n`;
}

function section(title: string, lines: readonly string[]): string {
  return [styleText("bold", `${title}:`), ...lines.map((line) => `  ${line}`)].join("\n");
}

function actionRow({ name, summary }: Verb): readonly [string, string] {
  return [name.slice(name.indexOf(" ") + 1), summary];
}

function optionRow(option: Option): readonly [string, string] {
  const { name, short, value, isRepeatable, summary, choices } = option;
  const form = `${short === undefined ? "   " : `-${short},`} --${name}${value === undefined ? "" : ` ${value}`}`;
  const notes = [
    choices && alternatives.format(choices),
    isRepeatable === true && "(repeatable)",
    option.default && `(default ${/^\d+$/.test(option.default) ? option.default : JSON.stringify(option.default)})`,
  ];
  return [form, [choices ? `${summary}:` : summary, ...notes.filter(Boolean)].join(" ")];
}

/** Two columns; the right one is wrapped. */
function table(rows: readonly (readonly [string, string])[], width: number): string[] {
  const leftWidth = Math.max(...rows.map(([left]) => left.length));
  const textWidth = Math.max(MIN_TEXT_WIDTH, width - leftWidth - 4);
  return rows.flatMap(([left, right]) =>
    wrap(right, textWidth).map((line, index) => `${(index === 0 ? left : "").padEnd(leftWidth)}  ${line}`),
  );
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  // A note in parentheses stays on one line.
  for (const word of text.match(/\([^()]{1,20}\)|\S+/g) ?? []) {
    const line = lines.at(-1);
    if (line === undefined || line.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = `${line} ${word}`;
  }
  return lines;
}
