//! Git: mirrors, transports, trees and notes. The only room that knows `git2`.
