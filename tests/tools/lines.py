"""Runs a unittest.TestCase and prints the lines that tests/run.py reads."""
import traceback
import unittest


class LineResult(unittest.TestResult):
    def addSuccess(self, test):
        print(f"ok {test._testMethodName}", flush=True)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        traceback.print_exception(*err)
        # What fails before the first test (setUpClass) has no method.
        print(f"not ok {getattr(test, '_testMethodName', test)}", flush=True)

    addError = addFailure

    def addSkip(self, test, reason):
        print(f"skip {test._testMethodName} # {reason}", flush=True)

    @staticmethod
    def run(case):
        result = LineResult()
        unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
        return 0 if result.wasSuccessful() else 1
