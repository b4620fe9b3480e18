import { expect } from "vitest";

/** The message about a status, without its prefix. */
export const status = (name: string, fields: object = {}) => ({
  event: "status_update",
  status: `SANDBOX_${name}`,
  ...fields,
});

const execution = expect.any(String);

/** The message that output of an execution follows. */
export const begun = (offset = 0) => status("EXECUTION_RUNNING", { execution, offset });

/** The message about output that is not replaced, so that its length shows where it ends. */
export const printed = (data: string, { event = "stdout", offset = 0 } = {}) => ({
  event,
  data,
  execution,
  offset,
  next: `${offset + Buffer.byteLength(data)}`,
});

/** The message about the end of an execution. */
export const done = (offset: number, exit_code = 0) => status("EXECUTION_DONE", { execution, offset, exit_code });

/** The messages about code that prints one text to its standard output. */
export const executed = (data: string, { exitCode = 0, offset = 0 } = {}) => [
  begun(offset),
  printed(data, { offset }),
  done(offset + Buffer.byteLength(data), exitCode),
];
