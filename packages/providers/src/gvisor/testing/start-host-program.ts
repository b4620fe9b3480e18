import { fileURLToPath } from "node:url";
import * as hostProgram from "../../host/testing/start-host-program.ts";

const script = fileURLToPath(new URL("host-program.ts", import.meta.url));

export interface HostProgramOptions extends hostProgram.HostProgramOptions {
  readonly stateDirectory: string;
}

export function startHostProgram({ stateDirectory, ...options }: HostProgramOptions): hostProgram.HostProgram {
  const config = { diskMib: 64, ...options.config };
  return hostProgram.startHostProgram(script, { stateDirectory }, { ...options, config });
}
