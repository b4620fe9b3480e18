import { provideGoProgram } from "./go-program.mjs";

/** Where the S3 server is that tests of the store run against. */
export function provideS3Server() {
  return provideGoProgram({
    name: "versitygw",
    packagePath: "github.com/versity/versitygw/cmd/versitygw",
    version: "v1.8.0",
    moduleSum: "h1:au+wI+aybno/STsQiSm35Uu6Q6iK5MWReQxgO6SEMFc=",
    purpose: "Tests of the S3 store",
  });
}
