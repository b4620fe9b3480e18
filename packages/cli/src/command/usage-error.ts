import { SandboxError } from "@sandpiper/protocol/error";

/** The command line is wrong; the program ends with exit code 2. */
export function usageError(message: string, hint: string): SandboxError {
  return new SandboxError("usage", { message, hint });
}

export interface InvalidValue {
  readonly value: string;
  /** What the option takes, such as `a port from 1 to 65535`. */
  readonly expected: string;
  readonly hint: string;
}

export function invalidValue(option: string, { value, expected, hint }: InvalidValue): SandboxError {
  return usageError(`invalid value ${JSON.stringify(value)} for --${option}: expected ${expected}`, hint);
}
