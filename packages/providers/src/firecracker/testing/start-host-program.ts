import { fileURLToPath } from "node:url";
import * as hostProgram from "../../host/testing/start-host-program.ts";
import type { FirecrackerFixture } from "./fixture.ts";

const script = fileURLToPath(new URL("host-program.ts", import.meta.url));

export interface HostProgramOptions extends hostProgram.HostProgramOptions {
  readonly fixture: Pick<FirecrackerFixture, "options" | "config">;
}

export function startHostProgram({ fixture, ...options }: HostProgramOptions): hostProgram.HostProgram {
  const config = { ...fixture.config, ...options.config };
  return hostProgram.startHostProgram(script, fixture.options, { ...options, config });
}
