import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Most of these take 10 s and more, whatever the size of the file: the last one to begin would run alone. */
const LONGEST =
  /\/(package|console\/(attacks|policy)|postgres\/(chaos|instances|leases|worlds)|(faults|process)\/[\w-]+|recompute\/recompute|sandbox\/(agreement|checkout-browser)|handlers\/slow-requests)\.test\.ts$/

/** A fresh checkout does not know yet how long each file takes. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    // The tests of a project stay together: a process serves one of them.
    const places = new Map(
      [...new Set(sorted.map(({ project }) => project.name))].map((name, i) => [name, i]),
    )
    const placeOf = ({ project, moduleId }: TestSpecification): number =>
      2 * (places.get(project.name) ?? 0) + (LONGEST.test(moduleId) ? 0 : 1)
    return sorted.sort((a, b) => placeOf(a) - placeOf(b))
  }
}
