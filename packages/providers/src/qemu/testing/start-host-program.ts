import { fileURLToPath } from "node:url";
import * as hostProgram from "../../host/testing/start-host-program.ts";
import type { QemuProviderOptions } from "../provider.ts";
import type { QemuFixture } from "./fixture.ts";

const script = fileURLToPath(new URL("host-program.ts", import.meta.url));

export interface HostProgramOptions extends hostProgram.HostProgramOptions {
  readonly fixture: Pick<QemuFixture, "stateDirectory" | "config">;
  readonly provider?: QemuProviderOptions | undefined;
}

export function startHostProgram({ fixture, provider, ...options }: HostProgramOptions): hostProgram.HostProgram {
  const { stateDirectory } = fixture;
  const config = { ...fixture.config, ...options.config };
  return hostProgram.startHostProgram(script, { stateDirectory, ...provider }, { ...options, config });
}
