import { execFileSync } from 'node:child_process'

/** Compiles once before any test: tests that start the built program run what is in the tree now. */
export default function build(): void {
  execFileSync('npm', ['run', '--silent', 'build'], { stdio: 'inherit' })
}
