import { findGoProblem, goProgramPath, provideGoProgram } from "./go-program.mjs";
import { isProgram } from "./programs.mjs";

/** @type {import("./go-program.mjs").GoProgram} */
const s3Server = {
  name: "versitygw",
  title: "the S3 server",
  packagePath: "github.com/versity/versitygw/cmd/versitygw",
  version: "v1.8.0",
  moduleSum: "h1:au+wI+aybno/STsQiSm35Uu6Q6iK5MWReQxgO6SEMFc=",
};

/** @type {import("./go-program.mjs").GoProgram} */
const registry = {
  name: "registry",
  title: "the image registry",
  packagePath: "github.com/google/go-containerregistry/cmd/registry",
  version: "v0.22.1",
  moduleSum: "h1:RZuuSYhTvlDvtsK+NkutoCZ//C0X2ebLK8X8l3ULs84=",
};

/**
 * The servers that tests start. Set-up builds them before tests run: a build beside tests would slow those down.
 * @returns {import("./plan.mjs").Plan}
 */
export function planServers() {
  const detail = [s3Server, registry].map(goProgramPath).join(", ");
  if ([s3Server, registry].every((program) => isProgram(goProgramPath(program)))) return { detail, problems: [] };
  return {
    detail,
    problems: findGoProblem("the servers that tests start"),
    announcement: { name: "test servers", seconds: 80 },
    work: async () => {
      await provideS3Server();
      await provideRegistry();
    },
  };
}

/** The path of the S3 server that tests of the store use. */
export function provideS3Server() {
  return provideGoProgram(s3Server);
}

/** The path of the image registry that tests of containers use. */
export function provideRegistry() {
  return provideGoProgram(registry);
}
