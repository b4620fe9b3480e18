import { type ErrorCodeEntry, errorCodes } from "@sandpiper/protocol";

/** The text of docs/errors.md. */
export function formatErrorDocs(): string {
  const rows = Object.entries<ErrorCodeEntry>(errorCodes).map(
    ([code, { httpStatus, retryable, meaning }]) =>
      `| \`${code}\` | ${httpStatus} | ${retryable ? "yes" : "no"} | ${meaning} |`,
  );
  return `<!-- Written by \`npm run docs\` from packages/protocol/src/error-codes.ts; change that file instead. -->
# Errors

Every failure is a \`SandboxError\`, on every surface. It has

- \`code\`: one of the closed set below, chosen by what the caller does next;
- \`reason\`: what happened, in snake_case, an open set (\`sandbox_limit\`, \`agent_timeout\`, …);
- \`message\`: what was tried, and on which id;
- \`hint\`: what to do next, where that is known;
- \`details\`: values that belong to the reason.

A command that exits non-zero is not an error. It is a result with an exit code.

| code | HTTP status | retry | meaning |
|---|---|---|---|
${rows.join("\n")}

*retry*: the same call may succeed later without a change by the caller.
`;
}
