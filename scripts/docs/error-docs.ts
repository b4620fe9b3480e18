import { type ErrorCodeEntry, type ErrorReasonEntry, errorCodes, errorTopics } from "@sandpiper/protocol";

/** The text of docs/errors.md. */
export function formatErrorDocs(): string {
  return `<!-- Written by \`npm run docs\` from packages/protocol/src/errors; change those files instead. -->
# Errors

Every failure is a \`SandboxError\`, in the SDK, the CLI, the HTTP API, WebSockets and MCP. It has

- \`code\`: one of the codes below, chosen by what the caller does next;
- \`reason\`: what happened, one of the reasons below. Newer versions may add reasons;
- \`message\`: what was tried, on which id, and why it failed;
- \`hint\`: the next step. An error may have a more precise hint than the one listed here;
- \`details\`: values that belong to the reason. Errors of a node also have \`requestId\`.

A command that exits non-zero is not an error. It is a result with an exit code.

\`\`\`ts
try {
  await sandbox.files.readText("/tmp/report");
} catch (error) {
  if (!SandboxError.is(error, "no_such_file")) throw error;
}
\`\`\`

\`SandboxError.is(value)\` and \`instanceof SandboxError\` also recognize errors of another copy of the package.

## Codes

| code | HTTP status | retry | meaning |
|---|---|---|---|
${Object.entries<ErrorCodeEntry>(errorCodes).map(formatCode).join("\n")}

*retry*: the same call may succeed later without a change by the caller.

## Reasons

An error that crossed the network keeps the code it was sent with.
${Object.entries<Topic>(errorTopics).map(formatTopic).join("")}`;
}

type Topic = Readonly<Record<string, ErrorReasonEntry>>;

function formatCode([code, { httpStatus, retryable, meaning }]: [string, ErrorCodeEntry]): string {
  return `| \`${code}\` | ${httpStatus} | ${retryable ? "yes" : "no"} | ${meaning} |`;
}

function formatTopic([title, reasons]: [string, Topic]): string {
  const rows = Object.entries(reasons).sort(([a], [b]) => (a < b ? -1 : 1));
  return `
### ${title}

| reason | code | meaning | next step | details |
|---|---|---|---|---|
${rows.map(formatReason).join("\n")}
`;
}

function formatReason([reason, { code, meaning, hint = "", details = {} }]: [string, ErrorReasonEntry]): string {
  const fields = Object.entries(details).map(([name, type]) => `\`${name}\`: ${type}`);
  return `| \`${reason}\` | \`${code}\` | ${meaning} | ${hint} | ${fields.join(", ")} |`;
}
