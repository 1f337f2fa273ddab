import { execFileSync } from 'node:child_process'

/** Builds once before any test: tests that start the built program, or a thread, run what is in the tree now. */
export default function build(): void {
  execFileSync('npm', ['run', '--silent', 'build'], { stdio: 'inherit' })
}
