"""Join trees and their choice."""
