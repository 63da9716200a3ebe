"""Copies of whole trees and of single files."""
