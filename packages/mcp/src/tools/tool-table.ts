import type { Tool } from "../tool/tool.ts";
import { checkpointSandbox } from "./checkpoint-sandbox.ts";
import { createSandbox } from "./create-sandbox.ts";
import { destroySandbox } from "./destroy-sandbox.ts";
import { downloadFile } from "./download-file.ts";
import { executeCode } from "./execute-code.ts";
import { exposePort } from "./expose-port.ts";
import { forkSandbox } from "./fork-sandbox.ts";
import { killProcess } from "./kill-process.ts";
import { listCheckpoints } from "./list-checkpoints.ts";
import { listDirectory } from "./list-directory.ts";
import { listProcesses } from "./list-processes.ts";
import { listSandboxes } from "./list-sandboxes.ts";
import { readFile } from "./read-file.ts";
import { readProcessOutput } from "./read-process-output.ts";
import { restoreSandbox } from "./restore-sandbox.ts";
import { runCommand } from "./run-command.ts";
import { startProcess } from "./start-process.ts";
import { uploadFile } from "./upload-file.ts";
import { writeFile } from "./write-file.ts";
import { writeProcessInput } from "./write-process-input.ts";

/** Every tool, in the order in which clients list them. */
export const tools: readonly Tool[] = Object.freeze([
  runCommand,
  executeCode,
  readFile,
  writeFile,
  listDirectory,
  uploadFile,
  downloadFile,
  startProcess,
  readProcessOutput,
  writeProcessInput,
  killProcess,
  listProcesses,
  exposePort,
  createSandbox,
  destroySandbox,
  listSandboxes,
  checkpointSandbox,
  listCheckpoints,
  restoreSandbox,
  forkSandbox,
]);
