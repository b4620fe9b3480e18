import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** Runs a host program with small text output. An exit code other than 0 is an error that has its standard error. */
export const run = promisify(execFile);
