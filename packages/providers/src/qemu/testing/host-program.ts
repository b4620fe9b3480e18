import { runHostProgram } from "../../host/testing/host-program.ts";
import { QemuProvider } from "../provider.ts";

await runHostProgram((options) => new QemuProvider(options));
